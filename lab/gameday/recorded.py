"""A generated day like those of real clusters: published distributions, with jobs from a seed.

Run times and GPUs: Microsoft's Philly, as sampled by Gavel (Narayanan et al., OSDI 2020; stanford-futuredata/gavel,
`scheduler/utils.py`, _generate_duration and _generate_scale_factor). Of 100 jobs, 70 have one GPU, 10 two, 15 four and
5 eight; 80 run for 10^1.5 to 10^3 minutes and 20 for 10^3 to 10^4, with a uniform exponent.

Ends: Philly's (Jeon et al., USENIX ATC 2019, Table 6). Of 100 jobs, 69.3 passed, 13.5 were killed and 17.2 were
unsuccessful.

Arrivals: a Poisson process, like Gavel's, with a rate from the cluster's size and the requested load.

Our additions: a job ends after LONGEST, so that the day ends. Eight GPUs are two pods, so that there are gangs. An
unsuccessful job crashes in each attempt, a killed one hangs until its deadline. One of ten passing jobs crashes once
before. Teams submit in proportion to their quotas. The traces have no teams and priorities.
"""

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
"""Mean of 100,000 generated jobs with limited run times. It sets the arrival rate."""


def day(seed: int, quotas: Mapping[str, int], gpus: int, hours: float = 24, load: float = 0.9) -> list[TraceLine]:
    """Return the jobs of a day.

    quotas: GPUs of each team.
    gpus: of the cluster.
    hours: time span of arrivals.
    load: average part of all GPUs that the jobs would use without faults.
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
    """Return a job's run time in seconds."""
    exponent = chance.uniform(3, 4) if chance.random() >= 0.8 else chance.uniform(1.5, 3)
    return min(LONGEST, int(60 * 10**exponent))


def _failure(chance: random.Random, seconds: int) -> str:
    """Return how a job fails; crashes are within its first tenth."""
    fate, after = chance.uniform(0, PASSED + KILLED + UNSUCCESSFUL), chance.randint(1, seconds // 10)
    if fate < PASSED:
        return f"crash@{after}x1" if fate < PASSED / 10 else "none"
    return "hang" if fate < PASSED + KILLED else f"crash@{after}"


def _one_of(chance: random.Random, shares: Mapping[T, int]) -> T:
    return chance.choices(list(shares), list(shares.values()))[0]
