"""Plan of a measurement: the cluster's size, the jobs, and the check of this machine's memory."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from components.tenancy.bounds import MOST_JOBS as MOST_OF_A_TEAM
from emulator.cluster.memory import MIB, needed

GPUS_PER_NODE: Final = 8
MOST_NODES, MOST_TEAMS, MOST_JOBS = 1000, 100, 10_000
SHAPES: Final = (((1, 1), 50), ((1, 2), 20), ((1, 4), 12), ((1, 8), 12), ((2, 8), 4), ((4, 8), 2))
"""Pods and GPUs per pod, with the number of such jobs among a hundred. The many small jobs hold few of the GPUs; gangs
of whole nodes hold a third.

GPUs are powers of two. Filling the nodes from the largest pod to the smallest leaves no GPU idle that a pending pod
could use, so the best possible packing of a wave is all of it.
"""
_JOBS_A_SECOND: Final = 3.0
"""Jobs per second in a row, from submission to complete deletion, on two cores."""
_ROW_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Job:
    """A job with this number of pods and GPUs per pod. team: its number."""

    name: str
    team: int
    pods: int
    gpus_per_pod: int

    @property
    def gpus(self) -> int:
        return self.pods * self.gpus_per_pod

    @property
    def is_gang(self) -> bool:
        """Whether its pods must start together."""
        return self.pods > 1


@dataclass(frozen=True)
class Scale:
    """A cluster of nodes with eight GPUs, which teams share evenly, and their number of jobs.

    Raises ValueError for a number out of range, with the name of the argument of `make`.
    """

    nodes: int
    teams: int
    jobs: int

    def __post_init__(self) -> None:
        for key, value, most in (
            ("NODES", self.nodes, MOST_NODES),
            ("TEAMS", self.teams, MOST_TEAMS),
            ("JOBS", self.jobs, MOST_JOBS),
        ):
            if not 1 <= value <= most:
                raise ValueError(f"{key}={value} is not measured: give 1 to {most}")
        if self.teams > self.gpus:
            raise ValueError(
                f"TEAMS={self.teams} are more than the {self.gpus} GPUs of NODES={self.nodes}: a team has one"
            )
        at_once = min(self.jobs, self.gpus)
        if at_once > self.teams * MOST_OF_A_TEAM:
            raise ValueError(
                f"JOBS={self.jobs} are {at_once} at a time, and a team's namespace holds {MOST_OF_A_TEAM}: "
                f"give TEAMS={math.ceil(at_once / MOST_OF_A_TEAM)} or more"
            )

    @property
    def gpus(self) -> int:
        return self.nodes * GPUS_PER_NODE

    @property
    def team_gpus(self) -> int:
        """GPUs of each team's quota, rounded down."""
        return self.gpus // self.teams

    @property
    def wave_jobs(self) -> int:
        """Approximate number of jobs in a wave: as many as fill all GPUs."""
        shapes = [(pods * gpus, weight) for (pods, gpus), weight in SHAPES if pods <= self.nodes]
        mean = sum(gpus * weight for gpus, weight in shapes) / sum(weight for _, weight in shapes)
        return min(self.jobs, math.ceil(self.gpus / mean))

    @property
    def mib(self) -> float:
        """Memory of the local cluster, rounded up."""
        return needed(self.nodes, self.wave_jobs) / MIB

    def seconds(self, rows: int) -> float:
        """Return the approximate duration of this number of rows, in seconds."""
        return rows * (_ROW_SECONDS + self.jobs / _JOBS_A_SECOND)

    def check_memory(self, available_mib: float) -> None:
        """Raise ValueError if the cluster does not fit this machine, with the largest number of nodes that does."""
        if self.mib <= available_mib:
            return
        fits = next((n for n in range(self.nodes - 1, 0, -1) if self._of(n).mib <= available_mib), 0)
        text = f"NODES={self.nodes} with JOBS={self.jobs} take {self.mib:.0f} MiB, and {available_mib:.0f} MiB are free"
        raise ValueError(f"{text}: NODES={fits} JOBS={self._of(fits).jobs} fit" if fits else f"{text}: no size fits")

    def _of(self, nodes: int) -> Scale:
        """Return the same with another number of nodes and proportionally many jobs."""
        jobs = max(1, self.jobs * nodes // self.nodes)
        return Scale(nodes, min(self.teams, nodes * GPUS_PER_NODE), jobs)


def waves(scale: Scale, seed: int) -> list[list[Job]]:
    """Return the jobs in waves: each fills the GPUs, and the next one starts after its end."""
    chance = random.Random(seed)  # noqa: S311 - a load, no secret
    found: list[list[Job]] = []
    number = 0
    while number < scale.jobs:
        wave, free = [], scale.gpus
        for pods, gpus in _shapes(chance, scale):
            if number == scale.jobs or not free:
                break
            if pods * gpus <= free:
                wave.append(Job(f"job-{number}", number % scale.teams, pods, gpus))
                number, free = number + 1, free - pods * gpus
        found.append(wave)
    return found


def _shapes(chance: random.Random, scale: Scale) -> Iterator[tuple[int, int]]:
    shapes = [(shape, weight) for shape, weight in SHAPES if shape[0] <= scale.nodes]
    while True:
        yield chance.choices([shape for shape, _ in shapes], [weight for _, weight in shapes])[0]


def best(jobs: Sequence[Job]) -> int:
    """Return the GPUs in use with the best possible packing of a wave: see SHAPES."""
    return sum(job.gpus for job in jobs)
