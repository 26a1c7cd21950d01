"""The events of a run and their times: jobs and faults, generated from a seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from components import names
from components.workloads.synthetic import SyntheticJob

GPUS_PER_NODE = 8
QUOTAS: Mapping[str, int] = {"blue": 16, "red": 16, "green": 8}
"""GPUs of each team, in whole nodes."""
SLACK = 8
NODES = (SLACK + sum(QUOTAS.values())) // GPUS_PER_NODE
MOST_LOST = 2
"""Largest number of nodes lost at a time: one more than the slack queue covers."""


class Fault(StrEnum):
    """Kinds of faults."""

    SICK = "sick"
    CORDONED = "cordoned"
    DELETED = "deleted"
    KUEUE = "kueue restarted"
    APPWRAPPER = "appwrapper restarted"
    SLACK_CONTROLLER = "slack-controller restarted"
    API_SERVER = "API server paused"


OF_NODES = (Fault.SICK, Fault.CORDONED, Fault.DELETED)
OF_CONTROLLERS = (Fault.KUEUE, Fault.APPWRAPPER, Fault.SLACK_CONTROLLER)


@dataclass(frozen=True)
class Event:
    """A fault between two seconds of the run: of a node by its position, or of a controller without an end."""

    at: float
    fault: Fault
    node: int = 0
    until: float = 0.0


def trace(seed: int, count: int) -> tuple[list[SyntheticJob], list[Event]]:
    """Return the jobs and the faults of a run, ordered by time. Each pod uses all GPUs of a node.

    Teams submit in bursts, so that they borrow from each other and reclaim. Jobs arrive about as fast as all nodes
    together can run them.
    """
    chance = random.Random(seed)  # noqa: S311 - a trace, no secret
    jobs: list[SyntheticJob] = []
    now = 0.0
    while len(jobs) < count:
        team = chance.choice(list(QUOTAS))
        for _ in range(min(chance.randint(1, 6), count - len(jobs))):
            pods = chance.choice([1, 1, 1, 2]) if QUOTAS[team] > GPUS_PER_NODE else 1
            job = SyntheticJob(
                name=f"job-{len(jobs)}",
                team=team,
                arrival=now,
                pods=pods,
                gpus=GPUS_PER_NODE,
                seconds=chance.randint(30, 240),
                priority_class=names.DEFAULT_PRIORITY,
            )
            jobs.append(job)
            now += chance.uniform(0, 3)
        now += chance.uniform(50, 160)
    return jobs, faults(chance, now)


@dataclass(frozen=True)
class Weather:
    """Kinds and frequency of faults.

    kinds: a repeated kind is more frequent.
    nodes: number of nodes.
    most_lost: nodes lost at a time.
    pause: fewest and most seconds between faults.
    lasts: fewest and most seconds of a lost node.
    paused: fewest and most seconds without the API server.
    """

    kinds: Sequence[Fault] = (*OF_NODES, *OF_NODES, *OF_NODES, *OF_CONTROLLERS)
    nodes: int = NODES
    most_lost: int = MOST_LOST
    pause: tuple[float, float] = (15, 60)
    lasts: tuple[float, float] = (30, 150)
    paused: tuple[float, float] = (2, 15)


def faults(chance: random.Random, end: float, weather: Weather = Weather()) -> list[Event]:
    """Return the faults of a time span in seconds, ordered by time."""
    events: list[Event] = []
    now = 30.0
    while now < end:
        fault = chance.choice(weather.kinds)
        if fault is Fault.API_SERVER:
            events.append(Event(now, fault, until=now + chance.uniform(*weather.paused)))
        elif fault not in OF_NODES:
            events.append(Event(now, fault))
        else:
            lost = [event for event in events if event.until > now and event.fault in OF_NODES]
            free = sorted(set(range(weather.nodes)) - {event.node for event in lost})
            if len(lost) < weather.most_lost:
                events.append(Event(now, fault, chance.choice(free), now + chance.uniform(*weather.lasts)))
        now += chance.uniform(*weather.pause)
    return events
