"""A day as clusters have recorded it: a trace whose shape is published, and whose jobs a seed decides.

Run times and GPUs: those of Microsoft's Philly, as Gavel samples them (Narayanan et al., OSDI 2020;
stanford-futuredata/gavel, `scheduler/utils.py`, _generate_duration and _generate_scale_factor): of 100 jobs 70 have one
GPU, 10 two, 15 four and 5 eight; 80 run for 10^1.5 to 10^3 minutes and 20 for 10^3 to 10^4, the exponent uniform.

How they end: as Philly's did (Jeon et al., USENIX ATC 2019, Table 6): of 100 jobs 69.3 passed, 13.5 were killed and
17.2 were unsuccessful.

Arrivals: a Poisson process, as Gavel's; how often, follows from the cluster's size and the load that is wanted.

What is ours: a job is cut off after LONGEST, so that the day ends; eight GPUs are two pods, so that there are gangs; an
unsuccessful job crashes in every attempt, a killed one hangs until its deadline; one of ten that pass crashes once
before; which team submits, by its quota, and the priorities, of which the traces say nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, TypeVar

from components import names
from stacks.config.trace import TraceLine

T = TypeVar("T")
HOUR: Final = 3600
LONGEST: Final = 12 * HOUR
PASSED: Final = 69.3
KILLED: Final = 13.5
UNSUCCESSFUL: Final = 17.2
_GPUS: Final[Mapping[int, int]] = {1: 70, 2: 10, 4: 15, 8: 5}
_GPUS_OF_A_POD: Final = 4
_PRIORITIES: Final[Mapping[str, int]] = {names.DEFAULT_PRIORITY: 8, names.LOW_PRIORITY: 1, names.HIGH_PRIORITY: 1}
_MEAN_GPU_HOURS: Final = 11.4
"""Of a job, with run times that are cut off: of 100,000 that were drawn. It decides how often jobs arrive."""


def day(seed: int, quotas: Mapping[str, int], gpus: int, hours: float = 24, load: float = 0.9) -> list[TraceLine]:
    """Return the jobs of a day.

    quotas: GPUs of each team. gpus: of the cluster. hours: in which jobs arrive. load: the part of all GPUs that they
    would take on average, if nothing went wrong.
    """
    chance = random.Random(seed)  # noqa: S311 - a trace, no secret
    between = HOUR * _MEAN_GPU_HOURS / (gpus * load)
    found: list[TraceLine] = []
    now = chance.expovariate(1 / between)
    while now < hours * HOUR:
        found.append(_job(chance, round(now, 1), quotas))
        now += chance.expovariate(1 / between)
    return found


def _job(chance: random.Random, arrival: float, quotas: Mapping[str, int]) -> TraceLine:
    seconds, gpus = run_time(chance), _one_of(chance, _GPUS)
    return TraceLine(
        arrival=arrival,
        team=_one_of(chance, quotas),
        pods=max(1, gpus // _GPUS_OF_A_POD),
        gpus=min(gpus, _GPUS_OF_A_POD),
        seconds=seconds,
        priority=_one_of(chance, _PRIORITIES),
        failure=_failure(chance, seconds),
    )


def run_time(chance: random.Random) -> int:
    """Return how long a job runs, in seconds."""
    exponent = chance.uniform(3, 4) if chance.random() >= 0.8 else chance.uniform(1.5, 3)
    return min(LONGEST, int(60 * 10**exponent))


def _failure(chance: random.Random, seconds: int) -> str:
    """Return how a job fails; where it crashes, within its first tenth."""
    fate, after = chance.uniform(0, PASSED + KILLED + UNSUCCESSFUL), chance.randint(1, seconds // 10)
    if fate < PASSED:
        return f"crash@{after}x1" if fate < PASSED / 10 else "none"
    return "hang" if fate < PASSED + KILLED else f"crash@{after}"


def _one_of(chance: random.Random, shares: Mapping[T, int]) -> T:
    return chance.choices(list(shares), list(shares.values()))[0]
