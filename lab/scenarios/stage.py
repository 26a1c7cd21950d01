"""The stage of a scenario: a cluster, the members of its teams, and the record of events."""

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.client import INTERNAL_SERVER_ERROR, TOO_MANY_REQUESTS
from typing import Any, TypeVar

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError
from urllib3.exceptions import HTTPError

from components import names
from components.scheduling.pod_group import in_group, pod_group
from components.tenancy.user_queues import queue_name
from emulator.paths import Paths
from lab.pods import is_up
from lab.scenarios.broken_gpu import heal
from lab.scenarios.record import Record
from lab.scenarios.size import FAILURE_GRACE, FAIR, OTHER, RECOVERY, TEAMS, Size
from runner.report import condition, is_true
from tests.local.environment import Cluster, eventually, gang
from tests.local.jobs import APPWRAPPER, KUEUE, cordon, gpu_nodes, lending_limit, mark, phase, pods_of
from tests.local.member import as_member
from tests.local.submission import remains

T = TypeVar("T")
_TRIES, _PAUSE = 10, 1.0
_PREFIX = "workload.codeflare.dev.appwrapper/"
_POD_GROUPS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "podgroups.scheduling.x-k8s.io")
HURRIED = {
    f"{_PREFIX}failureGracePeriodDuration": f"{FAILURE_GRACE}s",
    f"{_PREFIX}retryPausePeriodDuration": f"{RECOVERY['retryPauseSeconds']}s",
}
"""Shorter waits of a job: what takes minutes on a real cluster takes seconds here."""


class Stage:
    """A cluster of this size without jobs.

    patience: seconds until an awaited state counts as a broken promise.
    hopeless: a step, a regular expression, that is expected to fail, and its shorter patience in seconds.
    """

    hopeless: tuple[str, float] | None = None

    def __init__(
        self, paths: Paths, size: Size, record: Record, patience: float, hopeless: tuple[str, float] | None = None
    ) -> None:
        self.cluster, self.size, self.record, self.patience = Cluster(paths.kubeconfig), size, record, patience
        self.hopeless = hopeless
        self.members = {team: as_member(paths, user) for team, user in TEAMS.items()}
        self.other = as_member(paths, OTHER)
        self.nodes = gpu_nodes(self.cluster)
        self._submitted: list[tuple[str, str]] = []

    def until(
        self,
        what: str,
        probe: Callable[[], T],
        accept: Callable[[T], bool] = bool,
        times: float = 1,
        seconds: float | None = None,
    ) -> T:
        """Wait until a condition holds, and record it. Raises AssertionError with the last observation otherwise.

        seconds: the promised time; else `times` times the stage's patience.
        """
        patience = times * self._patience(what) if seconds is None else seconds
        found = eventually(what, lambda: asked(probe), accept, seconds=patience)
        self.record.say(f"✓ {what}")
        return found

    def _patience(self, what: str) -> float:
        if self.hopeless is not None and re.fullmatch(self.hopeless[0], what):
            return self.hopeless[1]
        return self.patience

    def stays(self, what: str, probe: Callable[[], bool], seconds: float) -> None:
        """Check that a condition holds for a while. Raises AssertionError if it does not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert asked(probe), f"not so: {what}"
            time.sleep(0.25)
        self.record.say(f"✓ {what}")

    def submit(
        self,
        team: str,
        name: str,
        *,
        pods: int = 1,
        gpus: int,
        seconds: int = 3600,
        priority: str = "",
        whole: bool = False,
        user: str | None = None,
        **annotations: str,
    ) -> None:
        """Submit a job as a member of the team. A whole one has a PodGroup if the cluster supports it."""
        user = user or TEAMS[team]
        labels, annotations = own_queue(team, user), {**HURRIED, **annotations}
        wrapper = gang(name, team, pods, gpus, seconds, labels=labels, annotations=annotations)
        job = wrapper["spec"]["components"][0]["template"]
        if priority:
            job["spec"]["template"]["spec"]["priorityClassName"] = priority
        if whole and self.cluster.get(*_POD_GROUPS):
            grouped = (pod_group(name, pods), in_group(name, job))
            wrapper["spec"]["components"] = [{"template": item} for item in grouped]
        each = "pod" if pods == 1 else f"{pods} pods"
        self.record.say(f"{user} submits {team}/{name}: {each} of {gpus} GPUs" + f" {priority}".rstrip())
        self._submitted.append((team, name))
        # An existing job was accepted, although the response was lost.
        with contextlib.suppress(ConflictError):
            asked(lambda: (self.other if user == OTHER else self.members[team]).create(wrapper))

    def end(self, team: str, name: str) -> None:
        self.record.say(f"{TEAMS[team]} deletes {team}/{name}")
        asked(lambda: self.members[team].delete(APPWRAPPER, "AppWrapper", name, team))

    def clear(self) -> None:
        """Delete all submitted jobs, and repair all nodes."""
        for team, name in self._submitted:
            asked(partial(self.cluster.delete, APPWRAPPER, "AppWrapper", name, team))
        for node in self.nodes:
            asked(partial(mark, self.cluster, node, None))
            asked(partial(cordon, self.cluster, node, False))
            asked(partial(heal, self.cluster, node))
        for team, name in self._submitted:
            eventually(
                f"{team}/{name} is gone",
                partial(asked, partial(remains, self.cluster, team, name)),
                lambda n: not n,
            )
        self._submitted.clear()

    def phase(self, team: str, name: str) -> str | None:
        return phase(self.cluster, team, name)

    def up(self, team: str, name: str) -> list[str]:
        """Return the node of each running pod of a job that is not being deleted."""
        return [pod["spec"]["nodeName"] for pod in pods_of(self.cluster, team, name) if is_up(pod)]

    def bound(self, team: str, name: str) -> list[str]:
        """Return the node of each pod of a job that has one."""
        return [pod["spec"]["nodeName"] for pod in pods_of(self.cluster, team, name) if pod["spec"].get("nodeName")]

    def runs(self, team: str, name: str, pods: int = 1, times: float = 1) -> list[str]:
        """Wait until all pods of a job run; return their nodes. Raises AssertionError with the reason otherwise."""
        what = f"{team}/{name} runs"
        try:
            return self.until(what, lambda: self.up(team, name), lambda nodes: len(nodes) == pods, times)
        except AssertionError as error:
            raise AssertionError(f"{error}; {asked(lambda: self.why(team, name)) or 'the reason is unknown'}") from None

    def all_run(self, jobs: Mapping[str, str]) -> None:
        """Wait until jobs of one pod run, by name with their team, and Kueue has noticed it.

        Kueue gives a starting job minutes, even if it has lost its node in the meantime.
        """
        for name, team in jobs.items():
            self.runs(team, name)
        self.until(
            "Kueue sees them run", lambda: sum(map(self._started, set(jobs.values()))), lambda found: found >= len(jobs)
        )

    def _started(self, team: str) -> int:
        return sum(is_true(item, "PodsReady") for item in self.cluster.list(KUEUE, "Workload", team))

    def why(self, team: str, name: str) -> str:
        """Return what blocks a job: Kueue's message about its quota, the scheduler's about its pods, or ""."""
        quota = self._quota(team, name)
        if quota.get("status") == "False":
            return f"Kueue says: {quota['message']}"
        placing = [condition(pod, "PodScheduled") or {} for pod in pods_of(self.cluster, team, name)]
        unplaced = [each["message"] for each in placing if each.get("status") == "False"]
        return f"the scheduler says: {unplaced[0]}" if unplaced else ""

    def judged(self, team: str, name: str) -> dict[str, Any]:
        """Wait until Kueue has created and considered a job's Workload; return its quota condition."""
        return self.until(f"Kueue has looked at {team}/{name}", lambda: self._quota(team, name))

    def waits(self, team: str, name: str) -> str:
        """Wait for Kueue's reason that a job has no quota; return it. Raises AssertionError if the job has quota."""
        quota = self.judged(team, name)
        assert quota["status"] == "False", f"not so: {team}/{name} waits"
        self.record.say(f"✓ {team}/{name} waits: {quota['message'][:160]}")
        return str(quota["message"])

    def _quota(self, team: str, name: str) -> dict[str, Any]:
        """Return the condition with Kueue's decision about a job's quota; {} before the decision."""
        for item in self.cluster.list(KUEUE, "Workload", team):
            if item["metadata"]["name"].startswith(f"appwrapper-{name}-"):
                return condition(item, "QuotaReserved") or {}
        return {}


def own_queue(team: str, user: str | None = None) -> dict[str, str]:
    """Return the label for the user's own queue, none in a team without such queues."""
    return {names.QUEUE_LABEL: queue_name(user or TEAMS[team])} if team == FAIR else {}


def asked(question: Callable[[], T]) -> T:
    """Call the API server, and retry if it is too busy, because that breaks no promise."""
    for _ in range(_TRIES - 1):
        try:
            return question()
        except ApiException as error:
            if error.status < INTERNAL_SERVER_ERROR and error.status != TOO_MANY_REQUESTS:
                raise
        except HTTPError:
            pass
        time.sleep(_PAUSE)
    return question()


def settle(cluster: Cluster) -> None:
    """Wait until every queue lends its full limit, which takes a while after a scenario with lost nodes."""
    for queue in ("slack", *TEAMS):
        eventually(
            f"{queue} lends all",
            partial(asked, partial(lending_limit, cluster, f"{queue}-cluster-queue")),
            lambda limit: limit is None,
        )
