"""The compared configurations: queues, schedulers, and limits of their clients."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from components import names
from components.scheduling import coscheduling
from components.scheduling.coscheduling import SCHEDULER, CoschedulingArgs
from components.scheduling.pod_group import in_group, pod_group
from lab.bench.admission import Limits
from lab.bench.scale.plan import Job
from tests.local.environment import gang

DEFAULT_SCHEDULER: Final = "default-scheduler"
_PLAIN: Final = "batch/job"
_PATIENT: Final = {"workload.codeflare.dev.appwrapper/warmupGracePeriodDuration": "30m"}
"""The longest time that members can request, so that a pending job is not restarted during the measurement."""
ALL_SCORED: Final = 101
"""With more nodes than this, a scheduler stops after it found half of them, or 100. The share falls with more nodes
(kubernetes, pkg/scheduler/schedule_one.go, numFeasibleNodesToFind).
"""
_LIMITS: Final = Limits("the platform's")


@dataclass(frozen=True)
class Row:
    """A way to run the same jobs.

    wrapped: in AppWrappers, as members submit them; otherwise they are Jobs of Kueue. in_team: in namespaces of teams;
    otherwise in others, without the platform's policies and quotas. packed: by the second scheduler, gangs as
    PodGroups; otherwise by Kubernetes' own. limits: of Kueue's client and workers.
    scheduler: what the second scheduler's configuration (kubescheduler.config.k8s.io/v1) says else than the platform's.
    fewest_nodes: on fewer it is the platform's row once more.
    by_kueue: Kueue names the nodes, in a stack without a second scheduler.
    """

    title: str
    wrapped: bool
    packed: bool
    limits: Limits = _LIMITS
    scheduler: Mapping[str, Any] = field(default_factory=dict)
    fewest_nodes: int = 1
    by_kueue: bool = False
    in_team: bool = True

    def configuration(self) -> Mapping[str, Any]:
        """Return Kueue's configuration: the platform's with these limits.

        For plain Jobs it has no AppWrapper, and for namespaces of no team no selector of namespaces.
        """
        found = self.limits.configuration()
        if not self.wrapped:
            found["integrations"] = {"frameworks": [_PLAIN]}
            found["controller"]["groupKindConcurrency"] = _plain_workers(found)
        if not self.in_team:
            del found["manageJobsWithoutQueueName"], found["managedJobsNamespaceSelector"]
        return found

    def scheduler_configuration(self) -> Mapping[str, Any]:
        """Return the second scheduler's configuration: the platform's with the row's differences."""
        return {**coscheduling.configuration(CoschedulingArgs(releases=())), **self.scheduler}

    def namespace(self, team: int) -> str:
        return team_name(team) if self.in_team else f"plain-{team}"

    def document(self, job: Job) -> dict[str, Any]:
        namespace = self.namespace(job.team)
        wrapper = gang(job.name, namespace, job.pods, job.gpus_per_pod, annotations=_PATIENT)
        inner = wrapper["spec"]["components"][0]["template"]
        inner["spec"]["template"]["spec"]["schedulerName"] = SCHEDULER if self.packed else DEFAULT_SCHEDULER
        if not self.wrapped:
            inner["metadata"] |= {"namespace": namespace, "labels": {names.QUEUE_LABEL: names.LOCAL_QUEUE}}
            return {**inner, "spec": {**inner["spec"], "suspend": True}}
        if not self.in_team:
            wrapper["metadata"]["labels"] = {names.QUEUE_LABEL: names.LOCAL_QUEUE}
        if self.packed and job.is_gang:
            grouped = (pod_group(job.name, job.pods), in_group(job.name, inner))
            wrapper["spec"]["components"] = [{"template": deepcopy(item)} for item in grouped]
        return wrapper


def _plain_workers(configuration: Mapping[str, Any]) -> dict[str, int]:
    """Return Kueue's workers, with as many for plain Jobs as for AppWrappers."""
    workers: dict[str, int] = dict(configuration["controller"]["groupKindConcurrency"])
    kind = next(key for key in workers if key.startswith("AppWrapper."))
    return {**{key: value for key, value in workers.items() if key != kind}, "Job.batch": workers[kind]}


def team_name(team: int) -> str:
    """Return the namespace of a team."""
    return f"team-{team}"


def member(team: int) -> str:
    """Return the user who submits a team's jobs."""
    return f"user-{team}"


PLATFORM: Final = Row("platform", wrapped=True, packed=True)
TOPOLOGY: Final = Row("topology", wrapped=True, packed=False, by_kueue=True)
PLAIN: Final = Row("plain Kueue", wrapped=False, packed=False, in_team=False)
ROWS: Final = (
    PLATFORM,
    PLAIN,
    Row("no team", wrapped=True, packed=True, in_team=False),
    Row("unpacked", wrapped=True, packed=False),
    Row("more queries", wrapped=True, packed=True, limits=Limits("raised", queries=1000, burst=2000, workers=10)),
    Row("fast client", wrapped=True, packed=True, scheduler={"clientConnection": {"qps": 1000, "burst": 2000}}),
    Row("all nodes", wrapped=True, packed=True, scheduler={"percentageOfNodesToScore": 100}, fewest_nodes=ALL_SCORED),
)
"""The rows of docs/benchmarks.md, in its order. The scheduler's client has 50 requests a second by default, 100
in a row (kubernetes, pkg/scheduler/apis/config/v1/defaults.go)."""


def rows_for(nodes: int) -> list[Row]:
    """Return the rows that differ on this number of nodes."""
    return [row for row in ROWS if row.fewest_nodes <= nodes]
