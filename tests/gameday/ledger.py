"""The books of a game day: what each job had and lost, and how long teams went without what is theirs.

Knows nothing of a cluster. Times are seconds of the clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum

from components.workloads.synthetic import SyntheticJob
from tests.soak.judge import Judge


class Phase(StrEnum):
    """Of an AppWrapper (v1.2.2, `api/v1beta2/appwrapper_types.go`), those that are told apart; LOST: there is none."""

    NEW = ""
    SUSPENDED = "Suspended"
    RESUMING = "Resuming"
    SUSPENDING = "Suspending"
    RESETTING = "Resetting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    LOST = "Lost"


_WITHOUT_QUOTA = (Phase.NEW, Phase.SUSPENDED, Phase.SUSPENDING)
_UNDONE = (Phase.SUSPENDED, Phase.SUSPENDING, Phase.RESETTING)
"""Of a job whose pods come to nothing: they are told to go, or are gone."""
PREEMPTED = "Preempted"
"""Why Kueue evicts a job for another one (kueue v0.19.2, `apis/kueue/v1beta2/workload_types.go`)."""
OVER = (Phase.SUCCEEDED, Phase.FAILED, Phase.LOST)


@dataclass(frozen=True)
class Seen:
    """How a job is at a moment. up: pods that run or are done. gpus: held by them. nodes: that they are on.

    evicted: the reason by which Kueue has taken its quota back, empty where it has not.
    """

    phase: str
    up: int = 0
    gpus: int = 0
    nodes: frozenset[str] = frozenset()
    evicted: str = ""


@dataclass(frozen=True)
class Claim:
    """What a job needs of its team's quota."""

    team: str
    gpus: int


@dataclass
class Tale:
    """What became of a job.

    started: when all of its pods ran for the first time. up_at: for the last time.
    attempt: GPU seconds of the pods that it has now. is_lost: those are what is left of an attempt, until others come.
    useful, wasted: GPU seconds of what led to its end, and of what had to be done again or led to nothing.
    marked_at: since when it runs on a node that is lost. lost_at: the same once it had to go, until it runs again.
    owed_at: since when it waits for quota or GPUs that others have borrowed. evictions: how often it ran on no lost
    node and had its quota taken, by Kueue's reason.
    """

    job: SyntheticJob
    submitted: float
    started: float | None = None
    ended: float | None = None
    phase: str = ""
    is_up: bool = False
    up_at: float | None = None
    is_lost: bool = False
    marked_at: float | None = None
    attempt: float = 0.0
    useful: float = 0.0
    wasted: float = 0.0
    lost_at: float | None = None
    owed_at: float | None = None
    evictions: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Sample:
    """Who held how many GPUs at a moment. well: GPUs of healthy nodes."""

    at: float
    held: Mapping[str, int]
    well: int


@dataclass
class Ledger:
    """Takes in what is seen of a day.

    gpus: of all nodes. used, idle: GPU seconds of those that pods held, and of healthy nodes' that none held.
    below: seconds for which each team had less than its quota while it had work for it; scarce: the part of them in
    which too few nodes were healthy for all quotas that were wanted. reclaims: seconds until an owner's job ran that
    had to wait for a borrower's quota or GPUs; recoveries: until a job ran again that had lost a node.
    """

    quotas: Mapping[str, int]
    gpus: int
    bound: float
    tales: dict[str, Tale] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    used: float = 0.0
    idle: float = 0.0
    offered: float = 0.0
    below: Counter[str] = field(default_factory=Counter)
    scarce: Counter[str] = field(default_factory=Counter)
    reclaims: list[float] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self.judge = Judge(self._claims, self.bound, self.quotas)
        self._last: float | None = None

    def submit(self, job: SyntheticJob, now: float) -> None:
        """Take in a job that is there from now on."""
        self.tales[job.name] = Tale(job, now)
        self._claims[job.name] = Claim(job.team, job.pods * job.gpus)

    @property
    def open(self) -> list[str]:
        """The jobs that are not over."""
        return [name for name, tale in self.tales.items() if tale.ended is None]

    @property
    def due(self) -> float:
        """When the last of the jobs that run will have ended, if nothing goes wrong."""
        return max((_due(tale) for tale in self.tales.values() if tale.is_up), default=0.0)

    def look(self, now: float, seen: Mapping[str, Seen], lost_nodes: Set[str], well: int, used_of_well: int) -> None:
        """Take in all jobs that are not over, the nodes that are lost, and the GPUs of healthy nodes, all and used."""
        elapsed = 0.0 if self._last is None else now - self._last
        self._last = now
        held: Counter[str] = Counter()
        for name, found in seen.items():
            held[self.tales[name].job.team] += found.gpus
            self._turn(self.tales[name], found, now, elapsed, lost_nodes)
        self.samples.append(Sample(now, {team: held[team] for team in self.quotas}, well))
        self.used += elapsed * sum(held.values())
        self.idle += elapsed * max(0, well - used_of_well)
        self.offered += elapsed * self.gpus
        self._judge(now, elapsed, well, well - used_of_well)

    def _turn(self, tale: Tale, found: Seen, now: float, elapsed: float, lost_nodes: Set[str]) -> None:
        """Take in how a job is."""
        tale.attempt += elapsed * found.gpus
        was, tale.phase = tale.phase, found.phase
        is_up = found.up >= tale.job.pods
        if found.phase in OVER:
            self._end(tale, now)
        elif is_up and not tale.is_up:
            self._start(tale, now)
        elif tale.is_up and not is_up:
            tale.is_lost = True
            if tale.marked_at is not None:
                tale.lost_at = tale.marked_at
            elif found.phase in _WITHOUT_QUOTA:
                tale.evictions[found.evicted] += 1
        tale.is_lost = not is_up and found.phase not in OVER and _is_lost(tale, was, found)
        if tale.is_lost:
            tale.wasted, tale.attempt = tale.wasted + tale.attempt, 0.0
        tale.is_up = is_up and tale.ended is None
        is_marked = tale.is_up and found.nodes & lost_nodes
        tale.marked_at = (tale.marked_at or now) if is_marked else None

    def _start(self, tale: Tale, now: float) -> None:
        tale.started, tale.up_at = now if tale.started is None else tale.started, now
        if tale.lost_at is not None:
            self.recoveries.append(now - tale.lost_at)
        elif tale.owed_at is not None:
            self.reclaims.append(now - tale.owed_at)
        tale.lost_at = tale.owed_at = None

    def _end(self, tale: Tale, now: float) -> None:
        """Close a job's account. What crashed in its place has done again what it did before."""
        tale.ended, failure = now, tale.job.failure
        again = min(tale.attempt, failure.times * failure.after * tale.job.pods * tale.job.gpus)
        again = again if tale.phase == Phase.SUCCEEDED else tale.attempt
        tale.wasted, tale.useful, tale.attempt = tale.wasted + again, tale.useful + tale.attempt - again, 0.0

    def _judge(self, now: float, elapsed: float, well: int, free: int) -> None:
        """Hold the teams' waiting jobs to their quotas. Who crashes by itself waits for its next attempt alone."""
        is_owed = {
            name: not tale.is_up and (tale.phase in _WITHOUT_QUOTA or tale.lost_at is not None or tale.started is None)
            for name, tale in self.tales.items()
            if tale.ended is None
        }
        served = {name for name, owed in is_owed.items() if not owed}
        self.judge.look(now, open_jobs=list(is_owed), running=served, healthy_gpus=well)
        use = Counter[str]()
        for name in served:
            use[self._claims[name].team] += self._claims[name].gpus
        # Whose pods are down for a moment, or not up yet, has its quota.
        has_quota = {name for name in is_owed if self.tales[name].phase not in _WITHOUT_QUOTA}
        left = well - sum(self._claims[name].gpus for name in has_quota)
        below, scarce = set[str](), set[str]()
        for name in is_owed.keys() - served:
            claim, tale = self._claims[name], self.tales[name]
            if name in self.judge.waiting:
                below.add(claim.team)
                room = free if name in has_quota else min(free, left)
                if tale.owed_at is None and room < claim.gpus:
                    tale.owed_at = now
                continue
            tale.owed_at = None
            if use[claim.team] + claim.gpus <= self.quotas[claim.team]:
                scarce.add(claim.team)
        for team in below | scarce:
            self.below[team] += elapsed
        for team in scarce - below:
            self.scarce[team] += elapsed


def _is_lost(tale: Tale, was: str, found: Seen) -> bool:
    """Tell whether the pods of a job that does not run are what is left of an attempt, which come to nothing."""
    if found.phase in _UNDONE:
        return True
    begins_anew = was in _UNDONE or found.phase == Phase.RESUMING or not found.gpus
    return tale.is_lost and not begins_anew


def _due(tale: Tale) -> float:
    """Return when a job that runs will have ended."""
    failure = tale.job.failure
    return (tale.up_at or 0.0) + tale.job.seconds + failure.times * failure.after
