"""The accounts of a game day: GPU time of each job, lost work, and teams' waits for their quota.

Independent of a cluster. Times are seconds of the clock.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum

from components.workloads.synthetic import SyntheticJob
from lab.soak.judge import Claim, Judge


class Phase(StrEnum):
    """Distinguished phases of an AppWrapper (v1.2.2, `api/v1beta2/appwrapper_types.go`). LOST: it does not exist."""

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
"""Phases of a job whose pods do not finish: they are deleted or about to be."""
PREEMPTED = "Preempted"
"""Kueue's reason for evicting a job for another one (kueue v0.19.2, `apis/kueue/v1beta2/workload_types.go`)."""
OVER = (Phase.SUCCEEDED, Phase.FAILED, Phase.LOST)


@dataclass(frozen=True)
class Seen:
    """The state of a job at a time. up: running and finished pods. gpus: held by them. nodes: that they run on.

    evicted: Kueue's reason for taking the quota back, empty otherwise.
    """

    phase: str
    up: int = 0
    gpus: int = 0
    nodes: frozenset[str] = frozenset()
    evicted: str = ""


@dataclass
class Tale:
    """The history of a job.

    started: when all its pods first ran.
    up_at: when they last started to run.
    attempt: GPU seconds of the current pods.
    is_lost: the current pods remain from a lost attempt, until new ones come.
    useful, wasted: GPU seconds that led to its end, and those that were repeated or had no result.
    marked_at: since when it runs on a lost node.
    lost_at: the same once it had to stop, until it runs again.
    owed_at: since when it waits for quota or GPUs that others borrowed.
    evictions: number of evictions from healthy nodes, by Kueue's reason.
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
    """GPUs that each team held at a time. well: GPUs of healthy nodes."""

    at: float
    held: Mapping[str, int]
    well: int


@dataclass
class Ledger:
    """Records the observations of a day.

    gpus: of all nodes.
    used, idle: GPU seconds held by pods, and not held on healthy nodes.
    below: seconds that each team had less than its quota and work for it.
    scarce: the part of them with too few healthy nodes for all requested quotas.
    reclaims: seconds until an owner's job ran that waited for a borrower's quota or GPUs.
    recoveries: seconds until a job ran again that had lost a node.
    """

    quotas: Mapping[str, int]
    gpus: int
    bound: float
    tales: dict[str, Tale] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    used: float = 0.0
    idle: float = 0.0
    offered: float = 0.0
    below: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    scarce: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    reclaims: list[float] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self.judge = Judge(self._claims, self.bound, self.quotas)
        self._last: float | None = None

    def submit(self, job: SyntheticJob, now: float) -> None:
        self.tales[job.name] = Tale(job, now)
        self._claims[job.name] = Claim(job.team, job.pods * job.gpus)

    @property
    def open(self) -> list[str]:
        return [name for name, tale in self.tales.items() if tale.ended is None]

    @property
    def due(self) -> float:
        """When the last of the running jobs will have ended without further faults."""
        return max((_due(tale) for tale in self.tales.values() if tale.is_up), default=0.0)

    def look(self, now: float, seen: Mapping[str, Seen], lost_nodes: Set[str], well: int, used_of_well: int) -> None:
        """Record all unfinished jobs, the lost nodes, and the GPUs of healthy nodes, all and used."""
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
        """Record the state of a job."""
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
        """Close a job's account. A job that crashed in place has repeated its earlier work."""
        tale.ended, failure = now, tale.job.failure
        again = min(tale.attempt, failure.times * failure.after * tale.job.pods * tale.job.gpus)
        again = again if tale.phase == Phase.SUCCEEDED else tale.attempt
        tale.wasted, tale.useful, tale.attempt = tale.wasted + again, tale.useful + tale.attempt - again, 0.0

    def _judge(self, now: float, elapsed: float, well: int, free: int) -> None:
        """Check the teams' waiting jobs against their quotas. A crashed job waits only for its next attempt.

        A job on a lost node waits too, although its pods still run.
        """
        is_owed = {name: _is_owed(tale) for name, tale in self.tales.items() if tale.ended is None}
        served = {name for name, owed in is_owed.items() if not owed}
        self.judge.look(now, open_jobs=list(is_owed), running=served, healthy_gpus=well)
        use = Counter[str]()
        for name in served:
            use[self._claims[name].team] += self._claims[name].gpus
        # A job whose pods restart or have not started yet still has its quota.
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
    """Tell whether the pods of a job that does not run remain from a lost attempt."""
    if found.phase in _UNDONE:
        return True
    begins_anew = was in _UNDONE or found.phase == Phase.RESUMING or not found.gpus
    return tale.is_lost and not begins_anew


def _is_owed(tale: Tale) -> bool:
    if tale.is_up:
        return tale.marked_at is not None
    return tale.phase in _WITHOUT_QUOTA or tale.lost_at is not None or tale.started is None


def _due(tale: Tale) -> float:
    """Return when a running job will have ended."""
    failure = tale.job.failure
    return (tale.up_at or 0.0) + tale.job.seconds + failure.times * failure.after
