"""The scenarios: actions of members and nodes, and the promise of the platform.

Each takes the stage, and raises AssertionError if the promise is not kept.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kubernetes.dynamic.exceptions import NotFoundError

from components.health.repair import ROUND_SECONDS
from components.tables import Table
from lab.pods import is_up
from lab.scenarios import broken_gpu
from lab.scenarios.attacks import isolation, quota_dodging
from lab.scenarios.size import BOUND, FAIR, GPUS_PER_NODE, OTHER, TEAMS
from lab.scenarios.stage import Stage
from tests.local.jobs import lending_limit, mark, pods_of

RETRIES: Final = 1
NO_QUOTA: Final = r".*; Kueue says: (?!.*(?:Pending the preemption|Preempting)).*insufficient .*nvidia\.com/gpu"
NO_NODE: Final = r".*; the scheduler says: .*Insufficient nvidia\.com/gpu"
"""End of the message for a job that does not run for lack of quota, or of a node. While other jobs give way to it,
Kueue reports both (v0.19.2, `pkg/scheduler/scheduler.go`: inadmissibleMsg).
"""
LATER: Final = 2.5
"""Longer wait for a job that lost its pods: AppWrapper checks a running job once a minute."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario of a promise. plays.yaml describes the fields."""

    name: str
    play: Callable[[Stage], None]
    promise: str
    breaks: str
    fails_at: str
    takes_minutes: bool = False

    @property
    def hopeless(self) -> str:
        """The step that fails without the mechanism, a regular expression."""
        return self.fails_at.partition(": ")[0]


class _Promise(Table):
    promise: str
    breaks: str
    fails_at: str
    takes_minutes: bool = False

    def of(self, name: str, play: Callable[[Stage], None]) -> Scenario:
        """Return its scenario."""
        fails_at = self.fails_at.format(no_quota=NO_QUOTA, no_node=NO_NODE)
        return Scenario(name=name, play=play, **{**dict(self), "fails_at": fails_at})


class _Promises(Table):
    scenarios: Mapping[str, _Promise]


def _fill(stage: Stage, team: str, names: Sequence[str]) -> None:
    """Submit jobs that need a node each, and wait until they run."""
    for name in names:
        stage.submit(team, name, gpus=GPUS_PER_NODE)
    for name in names:
        stage.runs(team, name)


def _until_run(stage: Stage, what: str, team: str, names: Sequence[str], number: int) -> None:
    """Wait until this number of jobs run."""
    stage.until(
        what, lambda: Counter(stage.phase(team, name) for name in names)["Running"], lambda running: running == number
    )


def _at_least(count: int, found: Sequence[str]) -> bool:
    return len(found) >= count


def queueing(stage: Stage) -> None:
    """The team's jobs use all GPUs. Three more wait, and start one by one as the first ones end."""
    first = [f"first-{index}" for index in range(stage.size.nodes)]
    _fill(stage, "red", first)
    waiting = ["next-0", "next-1", "next-2"]
    for name in waiting:
        stage.submit("red", name, gpus=GPUS_PER_NODE)
        # Kueue orders jobs by the creation time of their Workloads, in seconds.
        stage.judged("red", name)
        time.sleep(1.1)
    assert "nvidia.com/gpu" in stage.waits("red", waiting[-1])

    def started() -> list[str]:
        return [name for name in waiting if pods_of(stage.cluster, "red", name)]

    assert started() == [], f"{', '.join(started())} did not wait"
    for count, ended in enumerate(first[: len(waiting)], start=1):
        stage.end("red", ended)
        found = stage.until("one more starts", started, partial(_at_least, count))
        assert found == waiting[:count], f"when {count} had ended, {', '.join(found)} had started"


def fair_sharing(stage: Stage) -> None:
    """One user of a team uses all GPUs and queues for more. Another user of the team submits a first job."""
    first = [f"first-{index}" for index in range(stage.size.nodes)]
    _fill(stage, FAIR, first)
    stage.submit(FAIR, "older", gpus=GPUS_PER_NODE)
    stage.waits(FAIR, "older")
    time.sleep(1.1)
    stage.submit(FAIR, "newer", gpus=GPUS_PER_NODE, user=OTHER)
    stage.waits(FAIR, "newer")
    # Kueue may still be deciding on the newer job, and would then start the older one.
    time.sleep(3)
    stage.end(FAIR, first[0])
    stage.until("one of the two starts", lambda: any(pods_of(stage.cluster, FAIR, name) for name in ("older", "newer")))
    stage.stays(
        f"the first job of {OTHER} goes before the next one of {TEAMS[FAIR]}",
        lambda: not pods_of(stage.cluster, FAIR, "older"),
        seconds=2,
    )
    stage.runs(FAIR, "newer")
    stage.end(FAIR, first[1])
    stage.runs(FAIR, "older")
    stage.submit(FAIR, "urgent", gpus=GPUS_PER_NODE, priority="high-priority")
    stage.waits(FAIR, "urgent")
    running = ("newer", "older", *first[2:])
    stage.stays(
        "no job gives way to one of high priority",
        lambda: all(stage.phase(FAIR, name) == "Running" for name in running),
        seconds=2,
    )


def borrowing(stage: Stage) -> None:
    """A team alone on the cluster gets its quota, then all remaining GPUs, and no more."""
    owned = [f"own-{index}" for index in range(stage.size.team_nodes)]
    borrowing = [f"loan-{index}" for index in range(stage.size.nodes - stage.size.team_nodes)]
    _fill(stage, "blue", owned)
    _fill(stage, "blue", borrowing)
    stage.submit("blue", "one-more", gpus=1)
    assert "nvidia.com/gpu" in stage.waits("blue", "one-more")


def reclaim(stage: Stage) -> None:
    """A team has borrowed all GPUs. The owner of a part submits jobs for its whole quota."""
    borrowers = [f"loan-{index}" for index in range(stage.size.nodes)]
    _fill(stage, "blue", borrowers)
    owned = [f"own-{index}" for index in range(stage.size.team_nodes)]
    _fill(stage, "red", owned)
    left = stage.size.nodes - stage.size.team_nodes
    said = f"blue continues with {left * GPUS_PER_NODE} GPUs: its own and the unclaimed ones"
    _until_run(stage, said, "blue", borrowers, left)


def priorities(stage: Stage) -> None:
    """A team's urgent job preempts its own less important one, and no other team's.

    The team is red: with userFairSharing, which blue has, jobs do not preempt others of their team.
    """
    own = [f"low-{index}" for index in range(stage.size.nodes - stage.size.team_nodes)]
    others = [f"blue-{index}" for index in range(stage.size.team_nodes)]
    for name in others:
        stage.submit("blue", name, gpus=GPUS_PER_NODE, priority="low-priority")
    for name in own:
        stage.submit("red", name, gpus=GPUS_PER_NODE, priority="low-priority")
    stage.all_run(dict.fromkeys(others, "blue") | dict.fromkeys(own, "red"))
    stage.submit("red", "urgent", gpus=GPUS_PER_NODE, priority="high-priority")
    stage.runs("red", "urgent")
    # Kueue may preempt the older of two equal jobs, which then preempts the newer one: for a moment neither runs
    _until_run(stage, "of red's own jobs one had to wait", "red", own, len(own) - 1)
    assert all(stage.phase("blue", name) == "Running" for name in others), "another team's job had to wait"


def gangs(stage: Stage) -> None:
    """Two gangs fit into their quotas, but the nodes have room for one. The other one holds no GPUs until it fits."""
    pods = stage.size.nodes // 2 + 1
    gangs = {"blue": "gang", "red": "gang"}
    for team, name in gangs.items():
        stage.submit(team, name, pods=pods, gpus=5, whole=True)

    def whole() -> list[str]:
        return [team for team, name in gangs.items() if len(stage.up(team, name)) == pods]

    def hold() -> list[str]:
        return [team for team, name in gangs.items() if stage.bound(team, name)]

    stage.until(
        "all pods of both gangs are made",
        lambda: [len(pods_of(stage.cluster, team, name)) for team, name in gangs.items()],
        lambda made: made == [pods] * len(gangs),
    )
    stage.until("one gang runs whole, or both hold nodes", lambda: whole() or len(hold()) == len(gangs))
    stage.stays("a gang that does not run holds no node", lambda: len(hold()) < len(gangs), seconds=8)
    (first,) = stage.until("one gang runs whole", whole)
    (other,) = set(gangs) - {first}
    stage.end(first, gangs[first])
    stage.runs(other, gangs[other], pods)


def packing(stage: Stage) -> None:
    """Eight jobs of one GPU, one after the other, leave all nodes but one free for jobs with whole nodes."""
    for index in range(GPUS_PER_NODE):
        stage.submit("blue", f"small-{index}", gpus=1)
        stage.runs("blue", f"small-{index}")
    _fill(stage, "red", [f"whole-{index}" for index in range(stage.size.nodes - 1)])


def node_failure(stage: Stage) -> None:
    """On a full cluster Autopilot finds broken GPUs on the node of a job inside its team's quota."""
    loans = [f"loan-{index}" for index in range(stage.size.nodes - stage.size.team_nodes)]
    owned = [f"own-{index}" for index in range(stage.size.team_nodes)]
    for name in owned:
        stage.submit("red", name, gpus=GPUS_PER_NODE)
    for name in loans:
        stage.submit("blue", name, gpus=GPUS_PER_NODE)
    stage.all_run(dict.fromkeys(owned, "red") | dict.fromkeys(loans, "blue"))
    (sick,) = stage.up("red", owned[0])
    stage.record.say(f"Autopilot labels {sick} EVICT")
    mark(stage.cluster, sick, "EVICT")
    lost = time.monotonic()
    less = str(stage.size.slack - GPUS_PER_NODE)
    stage.until(f"the slack queue lends {less}", lambda: lending_limit(stage.cluster), lambda limit: limit == less)
    stage.until(
        f"red/{owned[0]} runs on another node",
        lambda: stage.up("red", owned[0]),
        lambda nodes: len(nodes) == 1 and nodes != [sick],
        seconds=round(lost + BOUND - time.monotonic()),
    )
    _until_run(stage, "one loan was taken back for it", "blue", loans, len(loans) - 1)
    stage.record.say(f"{sick} is repaired")
    mark(stage.cluster, sick, None)
    stage.until("the slack queue lends all again", lambda: lending_limit(stage.cluster), lambda limit: limit is None)
    for name in loans:
        stage.runs("blue", name, times=LATER)


def gpu_repair(stage: Stage) -> None:
    """A detector reports XID 79 on the node of a job. An administrator reports the host, then has the node tested."""
    stage.submit("red", "own", gpus=GPUS_PER_NODE)
    stage.all_run({"own": "red"})
    (sick,) = stage.up("red", "own")

    def state() -> str | None:
        return broken_gpu.state(stage.cluster, sick)

    stage.record.say(f"a detector reports XID 79 on {sick}")
    broken_gpu.detect(stage.cluster, sick, is_broken=True)
    stage.until(f"{sick} is quarantined", state, lambda found: found == "quarantined")
    stage.until("its job runs on another node", lambda: stage.up("red", "own"), lambda up: up not in ([], [sick]))
    less = str(stage.size.slack - GPUS_PER_NODE)
    stage.until(f"the slack queue lends {less}", lambda: lending_limit(stage.cluster), lambda limit: limit == less)
    stage.record.say(f"the administrator reports {sick} and restarts it; the detector is silent")
    broken_gpu.report_host(stage.cluster, sick)
    broken_gpu.detect(stage.cluster, sick, is_broken=False)
    stage.stays("without a test it does not return", lambda: state() == "reported", seconds=ROUND_SECONDS + 5)
    with broken_gpu.health_gate(stage.cluster):
        job = broken_gpu.test(stage.cluster, sick)
        where = partial(broken_gpu.gate_nodes, stage.cluster, job)
        stage.until("the health gate runs there", where, lambda nodes: nodes == [sick])
        stage.record.say("the health gate reports pass")
        broken_gpu.report_gate(stage.cluster, sick, "pass")
        stage.until(f"{sick} is back in service", lambda: state() is None)
    stage.until("the slack queue lends all again", lambda: lending_limit(stage.cluster), lambda limit: limit is None)


def beyond_slack(stage: Stage) -> None:
    """More nodes fail than slack covers. An idle team's quota is no longer lent, so borrowing jobs bear the loss."""
    jobs = [f"job-{index}" for index in range(stage.size.nodes)]
    for name in jobs:
        stage.submit("red", name, gpus=GPUS_PER_NODE)
    stage.all_run(dict.fromkeys(jobs, "red"))
    lost = stage.nodes[: stage.size.slack_nodes + 1]
    for node in lost:
        stage.record.say(f"Autopilot labels {node} EVICT")
        mark(stage.cluster, node, "EVICT")
    stage.until("the slack queue lends no GPUs", lambda: lending_limit(stage.cluster), lambda limit: limit == "0")
    idle = str(stage.size.team - GPUS_PER_NODE)
    stage.until(
        f"blue, which is idle, lends {idle}",
        lambda: lending_limit(stage.cluster, "blue-cluster-queue"),
        lambda limit: limit == idle,
    )
    left = stage.size.nodes - len(lost)
    stage.until(
        f"red runs {left} jobs on the {left} nodes that are well, and the others wait in the queue",
        lambda: Counter(stage.phase("red", name) for name in jobs),
        lambda found: found == {"Running": left, "Suspended": len(lost)},
        LATER,
    )
    for node in lost:
        mark(stage.cluster, node, None)
    for name in jobs:
        stage.runs("red", name, times=LATER)


def retries(stage: Stage) -> None:
    """A job's pods crash each time. It is recreated as often as the job requests, and then releases its GPU.

    Its Job also replaces a pod itself if AppWrapper has not checked in the meantime. So an attempt is a Job, not a pod.
    """
    limit = "workload.codeflare.dev.appwrapper/retryLimit"
    annotations: dict[str, Any] = {limit: str(RETRIES)}
    stage.submit("blue", "crashing", gpus=1, **annotations)
    attempts: dict[str, None] = {}

    def crashing() -> str | None:
        """Make each running pod crash, again if KWOK overwrote that; return the job's state."""
        for pod in pods_of(stage.cluster, "blue", "crashing"):
            if is_up(pod):
                attempts[pod["metadata"]["ownerReferences"][0]["uid"]] = None
                _crash(stage, pod)
        return stage.phase("blue", "crashing")

    stage.until("the job has failed for good", crashing, lambda phase: phase == "Failed", LATER)
    made = len(attempts)
    assert made == RETRIES + 1, f"it was created {made} times, and may be recreated {RETRIES} times"
    stage.until("its GPU is free", lambda: stage.bound("blue", "crashing"), lambda nodes: not nodes)


def _crash(stage: Stage, pod: dict[str, Any]) -> None:
    """End a pod's process with an error, in a kubelet's form, if the pod still exists."""
    metadata = pod["metadata"]
    stage.record.say(f"the process of {metadata['namespace']}/{metadata['name']} ends with exit code 1")
    kind = stage.cluster.kind("v1", "Pod")
    ended = {
        "name": "main",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": {"exitCode": 1, "reason": "Error"}},
    }
    body = {"status": {"phase": "Failed", "containerStatuses": [ended]}}
    where = {"name": metadata["name"], "namespace": metadata["namespace"]}
    with contextlib.suppress(NotFoundError):
        kind.status.patch(**where, body=body, content_type="application/merge-patch+json")


_PLAYS: Final = {
    play.__name__.replace("_", "-"): play
    for play in (
        *(queueing, fair_sharing, borrowing, reclaim, priorities, gangs, packing),
        *(quota_dodging, isolation, node_failure, gpu_repair, beyond_slack, retries),
    )
}
SCENARIOS: Final = {
    name: promise.of(name, _PLAYS[name]) for name, promise in _Promises.load(__name__).scenarios.items()
}
