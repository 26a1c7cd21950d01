"""Records a scenario: a line for each change, and the GPUs of each job over time."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from lab.periodic import every
from lab.pods import OF_JOB, held
from lab.scenarios.size import TEAMS
from tests.local.environment import Cluster
from tests.local.jobs import APPWRAPPER, GPU, HEALTH, KUEUE

EVERY = 0.5
"""Seconds between two observations."""


@dataclass
class Use:
    """GPUs of a node that a pod holds in a time span in seconds. The end is unset while it holds them."""

    team: str
    job: str
    node: str
    gpus: int
    began: float
    ended: float | None = None


@dataclass
class Loss:
    """A node that is marked broken in a time span in seconds. The end is unset while it is marked."""

    node: str
    began: float
    ended: float | None = None


@dataclass(frozen=True)
class Line:
    """An event and its time in seconds."""

    at: float
    text: str


@dataclass
class Record:
    """The lines of a scenario, uses of GPUs, and lost nodes.

    state: the last state of everything that gets a line when it changes.
    """

    began: float = field(default_factory=time.monotonic)
    lines: list[Line] = field(default_factory=list)
    uses: dict[str, Use] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return time.monotonic() - self.began

    def say(self, text: str) -> None:
        self.lines.append(Line(self.now, text))
        print(f"  {self.lines[-1].at:6.1f} s  {text}", flush=True)

    def see(self, what: str, now: str) -> None:
        """Record a state if it changed."""
        if self.state.get(what) != now:
            self.state[what] = now
            self.say(f"{what} {now}")

    def hold(self, pods: Mapping[str, Use], now: float) -> None:
        """Record the pods that hold GPUs at a time, by identity.

        now: start of new ones. Uses of missing pods end at the same time, because their successors have their GPUs.
        """
        for uid, use in self.uses.items():
            if use.ended is None and uid not in pods:
                use.ended = now
        for uid, use in pods.items():
            self.uses.setdefault(uid, use)

    def lose(self, nodes: Set[str], now: float) -> None:
        """Record the nodes that are lost at a time."""
        lost = {loss.node: loss for loss in self.losses if loss.ended is None}
        for node in lost.keys() - nodes:
            lost[node].ended = now
        self.losses += [Loss(node, now) for node in sorted(nodes - lost.keys())]


@contextlib.contextmanager
def recorded(cluster: Cluster, record: Record) -> Iterator[None]:
    """Observe a cluster in a thread, for the length of the context."""

    def observe() -> None:
        # A failed observation is repeated and does not end the record.
        with contextlib.suppress(ApiException, HTTPError):
            look(cluster, record)

    observe()
    with every(EVERY, observe):
        yield
    observe()


def look(cluster: Cluster, record: Record) -> None:
    """Record the current state of the cluster."""
    lost = set()
    for node in cluster.list("v1", "Node", label_selector="nvidia.com/gpu.present=true"):
        name, health = node["metadata"]["name"], (node["metadata"].get("labels") or {}).get(HEALTH)
        lost |= {name} if health else set()
        if health or name in record.state:
            record.see(name, f"is marked {health} by Autopilot" if health else "is well")
    record.lose(lost, record.now)
    for queue in cluster.list(KUEUE, "ClusterQueue"):
        limit = _lending(queue)
        if limit is not None or queue["metadata"]["name"] in record.state:
            record.see(queue["metadata"]["name"], "lends all" if limit is None else f"lends {limit} GPUs")
    pods = [pod for team in TEAMS for pod in cluster.list("v1", "Pod", team, label_selector=OF_JOB)]
    now = record.now
    record.hold({pod["metadata"]["uid"]: use for pod in pods for use in _uses(pod, now)}, now)
    for team in TEAMS:
        for wrapper in cluster.list(APPWRAPPER, "AppWrapper", team):
            name = wrapper["metadata"]["name"]
            phase = (wrapper.get("status") or {}).get("phase")
            places = sorted(
                {use.node for use in record.uses.values() if (use.team, use.job) == (team, name) and use.ended is None}
            )
            if phase:
                record.see(f"{team}/{name}", f"is {phase}" + (f" on {', '.join(places)}" if places else ""))


def _uses(pod: Mapping[str, Any], now: float) -> Iterator[Use]:
    """Yield the GPUs that a pod holds."""
    if gpus := held(pod):
        metadata = pod["metadata"]
        yield Use(metadata["namespace"], metadata["labels"][OF_JOB], pod["spec"]["nodeName"], gpus, now)


def _lending(queue: Mapping[str, Any]) -> str | None:
    resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    return next((item.get("lendingLimit") for item in resources if item["name"] == GPU), None)
