"""Checks whether a run keeps the promises to teams. Independent of a cluster."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lab.soak.trace import QUOTAS


@dataclass(frozen=True)
class Claim:
    """A job's share of its team's quota. gpus: of all its pods."""

    team: str
    gpus: int


@dataclass
class Judge:
    """Records observations of jobs and checks them against the bound.

    jobs: by name.
    quotas: GPUs of each team.
    waiting: the earliest time that each job could have run inside its team's quota.
    worst: the longest wait.
    """

    jobs: Mapping[str, Claim]
    bound: float
    quotas: Mapping[str, int] = field(default_factory=lambda: QUOTAS)
    waiting: dict[str, float] = field(default_factory=dict)
    worst: float = 0.0
    late: set[str] = field(default_factory=set)

    def look(self, now: float, *, open_jobs: Collection[str], running: Collection[str], healthy_gpus: int) -> None:
        """Record the submitted unfinished jobs, the running ones, and the GPUs of healthy nodes.

        A job waits if it fits into its team's quota next to the team's running jobs, while healthy nodes have enough
        GPUs for all claims within quotas.
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
