"""What happens in a run, and when: jobs and faults at random times that a seed decides."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

GPUS_PER_NODE = 8
QUOTAS: Mapping[str, int] = {"blue": 16, "red": 16, "green": 8}
"""GPUs of each team, in whole nodes."""
SLACK = 8
NODES = (SLACK + sum(QUOTAS.values())) // GPUS_PER_NODE
MOST_LOST = 2
"""Nodes that are lost at a time: one that the slack queue covers, and one beyond it."""


class Fault(StrEnum):
    """What goes wrong."""

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
class Job:
    """A job whose pods take all GPUs of a node each. at, seconds: when it is submitted and how long it runs."""

    at: float
    team: str
    name: str
    pods: int
    seconds: int

    @property
    def gpus(self) -> int:
        """How many GPUs it takes."""
        return self.pods * GPUS_PER_NODE


@dataclass(frozen=True)
class Event:
    """A fault from one second of the run to another; of a node by its position, of a controller without an end."""

    at: float
    fault: Fault
    node: int = 0
    until: float = 0.0


def trace(seed: int, count: int) -> tuple[list[Job], list[Event]]:
    """Return the jobs and the faults of a run, in the order of their times.

    Teams submit in bursts, so that they borrow from each other and take back. Jobs come about as fast as all nodes
    together can run them.
    """
    chance = random.Random(seed)  # noqa: S311 - a trace, no secret
    jobs: list[Job] = []
    now = 0.0
    while len(jobs) < count:
        team = chance.choice(list(QUOTAS))
        for _ in range(min(chance.randint(1, 6), count - len(jobs))):
            pods = chance.choice([1, 1, 1, 2]) if QUOTAS[team] > GPUS_PER_NODE else 1
            jobs.append(Job(now, team, f"job-{len(jobs)}", pods, chance.randint(30, 240)))
            now += chance.uniform(0, 3)
        now += chance.uniform(50, 160)
    return jobs, faults(chance, now)


@dataclass(frozen=True)
class Weather:
    """What may go wrong, as often as it stands there, on how many nodes, and how often.

    most_lost: nodes that are lost at a time. pause: seconds from one fault to the next, the fewest and the most.
    lasts: seconds that a node is lost for, likewise; paused: that the API server does not answer.
    """

    kinds: Sequence[Fault] = (*OF_NODES, *OF_NODES, *OF_NODES, *OF_CONTROLLERS)
    nodes: int = NODES
    most_lost: int = MOST_LOST
    pause: tuple[float, float] = (15, 60)
    lasts: tuple[float, float] = (30, 150)
    paused: tuple[float, float] = (2, 15)


def faults(chance: random.Random, end: float, weather: Weather = Weather()) -> list[Event]:
    """Return the faults of so many seconds, in the order of their times."""
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
