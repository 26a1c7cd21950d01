"""What happens in a run, and when: jobs and faults at random times that a seed decides."""

from __future__ import annotations

import random
from collections.abc import Mapping
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


OF_NODES = (Fault.SICK, Fault.CORDONED, Fault.DELETED)


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
    return jobs, _faults(chance, now)


def _faults(chance: random.Random, end: float) -> list[Event]:
    events: list[Event] = []
    now = 30.0
    while now < end:
        fault = chance.choice([*OF_NODES, *OF_NODES, *Fault])
        if fault not in OF_NODES:
            events.append(Event(now, fault))
        else:
            lost = [event for event in events if event.until > now]
            free = sorted(set(range(NODES)) - {event.node for event in lost})
            if len(lost) < MOST_LOST:
                events.append(Event(now, fault, chance.choice(free), now + chance.uniform(30, 150)))
        now += chance.uniform(15, 60)
    return events
