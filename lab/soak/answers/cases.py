"""Jobs to ask about and then to submit: a table of written ones, and generated ones."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ask.answer import Verdict
from lab.scenarios.size import TEAMS
from lab.soak.answers.manifests import Document, around, pytorch, ray_cluster, ray_job, train_job, wrapped


class State(StrEnum):
    """The state of the cluster before a job is submitted."""

    EMPTY = "empty"
    """No jobs."""
    FULL = "full"
    """Blue uses all GPUs, two thirds of them on loan, and has one more pending job."""


@dataclass(frozen=True)
class Case:
    """A job of a team's member, or of another user. expected: its outcome, for written cases."""

    state: State
    team: str
    document: Document
    expected: Verdict | None = None
    user: str | None = None

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def submitter(self) -> str:
        return self.user or TEAMS[self.team]


def _case(state: State, verdict: Verdict, team: str, make: Callable[..., Document], *size: int, **pod: Any) -> Case:
    return Case(state, team, make("job", team, *size, **pod), verdict)


def _other(document: Document, user: str | None = None) -> Case:
    return Case(State.EMPTY, "blue", document, Verdict.REFUSED, user)


_CPUS: Final = {"cpu": "300"}
_EVERYWHERE: Final = [{"operator": "Exists"}]
_PRIVILEGED: Final = {"securityContext": {"privileged": True}}
_HOST: Final = [{"name": "host", "hostPath": {"path": "/etc"}}]
_ROLE: Final = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"}, "rules": []}


def _held(document: Document) -> Document:
    return {**document, "metadata": {**document["metadata"], "finalizers": ["example.org/hold"]}}


EMPTY, FULL = State.EMPTY, State.FULL
RUNS, YIELDS, WAITS, NEVER, REFUSED = (
    Verdict.ADMITTED,
    Verdict.PREEMPTS,
    Verdict.WAITS,
    Verdict.NEVER,
    Verdict.REFUSED,
)
WRITTEN: Final[Mapping[str, Case]] = {
    "a GPU": _case(EMPTY, RUNS, "blue", wrapped, 1, 1),
    "a gang over two nodes, one of them borrowed": _case(EMPTY, RUNS, "blue", wrapped, 2, 8, whole=True),
    "a group of pods on all nodes": _case(EMPTY, RUNS, "red", wrapped, 6, 4, whole=True),
    "a TrainJob": _case(EMPTY, RUNS, "red", train_job, 2, 4),
    "an urgent job": _case(EMPTY, RUNS, "red", wrapped, 1, 8, priorityClassName="high-priority"),
    "a PyTorchJob": _case(EMPTY, RUNS, "blue", pytorch, 1, 4),
    "a RayCluster": _case(EMPTY, RUNS, "blue", ray_cluster, 2, 4),
    "a RayJob": _case(EMPTY, RUNS, "red", ray_job, 1, 8),
    "a PyTorchJob in an AppWrapper": Case(
        EMPTY, "blue", around("job", "blue", pytorch("inner", "blue", 1, 2, suspended=False)), RUNS
    ),
    "more GPUs than a node has": _case(EMPTY, NEVER, "blue", wrapped, 1, 16),
    "more nodes than there are": _case(EMPTY, NEVER, "blue", wrapped, 4, 8, whole=True),
    "more CPUs than a node has": _case(EMPTY, NEVER, "red", wrapped, 1, 1, amounts=_CPUS),
    "a node that is not there": _case(EMPTY, NEVER, "red", wrapped, 1, 1, nodeSelector={"zone": "moon"}),
    "what no flavor covers": _case(EMPTY, NEVER, "blue", wrapped, 1, 1, amounts={"example.com/fpga": "1"}),
    "a PyTorchJob larger than the cluster": _case(EMPTY, NEVER, "blue", pytorch, 3, 8),
    "tolerations": _case(EMPTY, REFUSED, "blue", wrapped, 1, 1, tolerations=_EVERYWHERE),
    "the host's network": _case(EMPTY, REFUSED, "blue", wrapped, 1, 1, hostNetwork=True),
    "a folder of the node": _case(EMPTY, REFUSED, "blue", wrapped, 1, 1, volumes=_HOST),
    "privileges": _case(EMPTY, REFUSED, "red", wrapped, 1, 1, container=_PRIVILEGED),
    "the system's priority": _case(EMPTY, REFUSED, "red", wrapped, 1, 1, priorityClassName="system-node-critical"),
    "a PyTorchJob for another scheduler": _case(EMPTY, REFUSED, "blue", pytorch, 0, 1, schedulerName="another"),
    "rights in an AppWrapper": _other(around("job", "blue", _ROLE)),
    "a finalizer": _other(_held(wrapped("job", "blue"))),
    "another team's member": _other(wrapped("job", "blue"), user="bob"),
    "a plain Job": _other(
        {
            **wrapped("job", "blue")["spec"]["components"][0]["template"],
            "metadata": {"name": "job", "namespace": "blue"},
        }
    ),
    "more than is free": _case(FULL, WAITS, "blue", wrapped, 2, 8, whole=True),
    "a TrainJob behind another": _case(FULL, WAITS, "blue", train_job, 1, 8),
    "more than its quota when all is lent": _case(FULL, WAITS, "red", wrapped, 2, 8, whole=True),
    "an owner who comes back": _case(FULL, YIELDS, "red", wrapped, 2, 4, whole=True),
    "no GPU on a full cluster": _case(FULL, RUNS, "red", wrapped, 1, 0),
}
"""Written cases with expected outcomes."""

_WRONG: Final[tuple[Mapping[str, Any], ...]] = (
    {"tolerations": _EVERYWHERE},
    {"hostPID": True},
    {"schedulerName": "another"},
    {"nodeName": "gpu-node-0"},
    {"volumes": _HOST},
    {"runtimeClassName": "another"},
)
_MAKERS: Final = (wrapped, wrapped, pytorch, ray_cluster, ray_job, train_job)


def generated(seed: int, count: int) -> dict[str, Case]:
    """Return cases with kinds, sizes, priorities and errors generated from a seed."""
    chance = random.Random(seed)  # noqa: S311 - jobs, no secret
    found = {}
    for number in range(count):
        team, state = chance.choice(list(TEAMS)), chance.choice([EMPTY, EMPTY, FULL])
        make = chance.choice(_MAKERS)
        pod: dict[str, Any] = {}
        if chance.random() < 0.2:
            pod |= chance.choice(_WRONG)
        elif chance.random() < 0.3:
            pod["priorityClassName"] = chance.choice(["low-priority", "high-priority"])
        if make is wrapped and chance.random() < 0.5:
            pod["whole"] = True
        size = (chance.choice([1, 1, 2, 3, 4]), chance.choice([0, 1, 2, 4, 8, 8, 12]))
        what = f"{number}: {make.__name__} {size[0]} x {size[1]} {' '.join(pod)}".rstrip()
        found[what] = Case(state, team, make("job", team, *size, **pod))
    return found
