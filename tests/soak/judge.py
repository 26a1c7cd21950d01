"""Whether a run keeps what is promised to teams. Knows nothing of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tests.soak.trace import QUOTAS


class Claim(Protocol):
    """What a job needs of its team's quota. gpus: of all of its pods."""

    @property
    def team(self) -> str: ...

    @property
    def gpus(self) -> int: ...


@dataclass
class Judge:
    """Takes in what is seen of the jobs, and holds it to the bound.

    jobs: by name. quotas: GPUs of each team.
    waiting: since when each job could have run inside its team's quota. worst: the longest such time.
    """

    jobs: Mapping[str, Claim]
    bound: float
    quotas: Mapping[str, int] = field(default_factory=lambda: QUOTAS)
    waiting: dict[str, float] = field(default_factory=dict)
    worst: float = 0.0
    late: set[str] = field(default_factory=set)

    def look(self, now: float, *, open_jobs: Collection[str], running: Collection[str], healthy_gpus: int) -> None:
        """Take in the jobs that are submitted and not finished, those that run, and the GPUs of healthy nodes.

        A job waits that fits into its team's quota beside what the team runs, while the nodes have all that the teams
        may claim of their own.
        """
        used = {
            team: sum(self.jobs[name].gpus for name in running if self.jobs[name].team == team) for team in self.quotas
        }
        wanted = {team: sum(self.jobs[n].gpus for n in open_jobs if self.jobs[n].team == team) for team in self.quotas}
        is_promised = sum(min(quota, wanted[team]) for team, quota in self.quotas.items()) <= healthy_gpus
        for name in open_jobs:
            job = self.jobs[name]
            if name not in running and is_promised and used[job.team] + job.gpus <= self.quotas[job.team]:
                waited = now - self.waiting.setdefault(name, now)
                self.worst = max(self.worst, waited)
                if waited > self.bound:
                    self.late.add(name)
            else:
                self.waiting.pop(name, None)
        for name in self.waiting.keys() - set(open_jobs):
            del self.waiting[name]
