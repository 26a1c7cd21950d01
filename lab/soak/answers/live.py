"""The outcome of a job that a member submits, observed on the cluster."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import NotFoundError

from ask.answer import Verdict
from emulator.paths import Paths
from lab.soak.answers.cases import Case
from runner.report import condition, is_true, message
from tests.local.environment import Cluster, eventually
from tests.local.jobs import KUEUE
from tests.local.member import as_member

SECONDS: Final = 120.0
"""Seconds after which a job counts as not running."""
_SETTLED: Final = 20.0
"""Seconds that a job which does not run must stay unchanged to count as settled."""
_DENIED: Final = ("denied request", "is forbidden")

Document = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job. gave_way: jobs that were preempted for it. said: the reason if it does not run."""

    verdict: Verdict
    gave_way: tuple[str, ...] = ()
    said: str = ""


class Live:
    """The cluster. Submitted jobs are deleted again."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.cluster = Cluster(paths.kubeconfig)

    def outcome(self, case: Case) -> Outcome:
        """Submit a job as its member and return its outcome."""
        member = as_member(self._paths, case.submitter)
        try:
            member.create(case.document, fieldValidation="Strict")  # like kubectl
        except ApiException as error:
            return Outcome(Verdict.REFUSED, said=message(error))
        try:
            return self._watch(case)
        finally:
            self._remove(case)

    def _watch(self, case: Case) -> Outcome:
        deadline, still, last = time.monotonic() + SECONDS, time.monotonic(), ""
        gone = set[str]()
        while True:
            workload = self._workload(case)
            state = self._state(case, workload)
            # A preempted job may have its quota again by the end, and then no longer shows the preemption.
            gone |= self._given_way(workload) if workload is not None else set()
            if isinstance(state, Outcome):
                if state.verdict is Verdict.ADMITTED and gone:
                    return Outcome(Verdict.PREEMPTS, tuple(sorted(gone)))
                return state
            if state != last:
                still, last = time.monotonic(), state
            if time.monotonic() > deadline or (state and time.monotonic() - still > _SETTLED):
                return Outcome(Verdict.WAITS, said=state)
            time.sleep(0.3)

    def _state(self, case: Case, workload: Document | None) -> Outcome | str:
        """Return the outcome of the job, or the reported reason that it has none yet."""
        if workload is None:
            return ""
        if not is_true(workload, "QuotaReserved"):
            said = str((condition(workload, "QuotaReserved") or {}).get("message") or "")
            return "" if "Pending the preemption" in said else said
        denied = next((said for said in self._warnings(case) if any(word in said for word in _DENIED)), None)
        if denied:
            return Outcome(Verdict.REFUSED, said=denied)
        pods = self._pods(case)
        wanted = sum(int(each["count"]) for each in workload["spec"]["podSets"])
        if sum(bool(pod["spec"].get("nodeName")) for pod in pods) >= wanted:
            return Outcome(Verdict.ADMITTED)
        scheduled = [condition(pod, "PodScheduled") for pod in pods if not pod["spec"].get("nodeName")]
        return next((str(each["message"]) for each in scheduled if each and each["status"] == "False"), "")

    def _workload(self, case: Case) -> Document | None:
        kind = case.document["kind"]
        for item in self.cluster.list(KUEUE, "Workload", case.team):
            owners = item["metadata"].get("ownerReferences") or ()
            if any((owner["kind"], owner["name"]) == (kind, case.name) for owner in owners):
                return item
        return None

    def _pods(self, case: Case) -> list[Document]:
        """Return the pods that descend from the job, by their owners."""
        return [pod for pod in self.cluster.list("v1", "Pod", case.team) if self._descends(pod, case)]

    def _descends(self, item: Document, case: Case) -> bool:
        for owner in item["metadata"].get("ownerReferences") or ():
            if (owner["kind"], owner["name"]) == (case.document["kind"], case.name):
                return True
            found = self.cluster.get(owner["apiVersion"], owner["kind"], owner["name"], case.team)
            if found is not None and self._descends(found, case):
                return True
        return False

    def _warnings(self, case: Case) -> Iterator[str]:
        """Yield the warnings of controllers about the job and its objects."""
        for event in self.cluster.list("v1", "Event", case.team):
            about = event["involvedObject"]
            if event.get("type") != "Warning" or "apiVersion" not in about:
                continue
            found = self.cluster.get(about["apiVersion"], about["kind"], about["name"], case.team)
            if found is None or found["metadata"]["uid"] != about.get("uid"):
                continue
            if (about["kind"], about["name"]) == (case.document["kind"], case.name) or self._descends(found, case):
                yield str(event.get("message"))

    def _given_way(self, workload: Document) -> set[str]:
        """Return the jobs that were preempted for a job.

        The message names the preemptor (kueue v0.19.2, `pkg/scheduler/preemption/preemption.go`, preemptionMessage). A
        preempted job may itself preempt another one.
        """
        told = [(item, condition(item, "Preempted")) for item in self.cluster.list(KUEUE, "Workload")]
        return {
            f"{item['metadata']['namespace']}/{item['metadata']['ownerReferences'][0]['name']}"
            for item, each in told
            if each and each["status"] == "True" and f"(UID: {workload['metadata']['uid']}," in each["message"]
        }

    def _remove(self, case: Case) -> None:
        document = case.document
        resource = self.cluster.kind(document["apiVersion"], document["kind"])
        pods = {pod["metadata"]["uid"] for pod in self._pods(case)}
        try:
            self.cluster.client.delete(resource, name=case.name, namespace=case.team)
        except NotFoundError:
            return
        eventually(
            f"{case.team}/{case.name} is gone",
            lambda: (
                self._workload(case) is None
                and not pods & {pod["metadata"]["uid"] for pod in self.cluster.list("v1", "Pod", case.team)}
            ),
        )
