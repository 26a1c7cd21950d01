"""Whether a job of a team could ever run: on the nodes as they are, and in the team's queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from components import names
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.problems import Path, Problem, key, listed, nearest
from stacks.quotas import slack_quota, team_quotas
from stacks.reading import Parts
from stacks.settings import Target
from stacks.settings.tenancy import TeamSettings


@dataclass(frozen=True, kw_only=True)
class Job:
    """Like pods that run together, submitted to a team's queue.

    what: the job in words. path: of its section. size: the key of the number of pods in it.
    team: as it was written, None where the key is missing. submitter: the path of that key, `team` in the section
    unless given. requests: what one pod asks for.
    """

    what: str
    path: Path
    size: str
    team: str | None
    pods: int
    requests: Quota
    submitter: Path | None = None


def quotas(parts: Parts) -> Mapping[str, Quota]:
    """Return the quotas that are known, by team: shares are unknown while the nodes are."""
    teams = [team for team in parts.teams if team is not None]
    pool, queueing = parts.pool, parts.queueing
    if pool is None or queueing is None or None in parts.teams:
        return {team.name: team.quota.amounts() for team in teams if team.quota is not None}
    return team_quotas(teams, queueing, pool)


def nodes_key(parts: Parts) -> str:
    """Return the key that sets the number of GPU nodes."""
    return key(("azure", "gpuPool", "count") if parts.target is Target.AKS else ("nodes",))


def check(parts: Parts, job: Job) -> Iterator[Problem]:
    """Yield why a job could never run."""
    yield from _team(parts, job)
    if parts.pool is not None:
        yield from on_nodes(parts, job)
        if parts.queueing is not None:
            yield from _in_queue(parts, job)


def on_nodes(parts: Parts, job: Job) -> Iterator[Problem]:
    """Yield the problem of a job whose pods the nodes could not hold at once."""
    pool = parts.pool
    if pool is None:
        return
    available = pool.shape.resources
    per_node = {resource: available[resource] // amount for resource, amount in job.requests.items() if amount.nano}
    fitting = min(per_node.values()) * pool.count
    if fitting >= job.pods:
        return
    scarce = min(per_node, key=lambda resource: per_node[resource])
    yield Problem(
        path=(*job.path, job.size),
        value=job.pods,
        wrong=f"{pool.count} nodes hold {fitting} such pods at once: a node has {available[scarce]} {scarce}, a pod "
        f"asks for {job.requests[scarce]}",
        allowed=f"at most {fitting} pods" if fitting else f"pods that ask for at most {available[scarce]} {scarce}",
        fix=f"ask for fewer pods or less for each, or raise {nodes_key(parts)}",
    )


def _team(parts: Parts, job: Job) -> Iterator[Problem]:
    known = [name for name in parts.team_names if isinstance(name, str)]
    if job.team is not None and job.team in known:
        return
    meant = nearest(job.team, known) if job.team else None
    first = f"set it to {known[0]}" if known else "add a team to mlbatch:teams"
    yield Problem(
        path=job.submitter or (*job.path, "team"),
        **({} if job.team is None else {"value": job.team}),
        wrong="a team has to submit the job" if job.team is None else "there is no such team",
        allowed=listed(known),
        fix=f"did you mean {meant}?" if meant else first,
    )


def _in_queue(parts: Parts, job: Job) -> Iterator[Problem]:
    assert parts.pool is not None
    assert parts.queueing is not None
    team = next((team for team in parts.teams if team is not None and team.name == job.team), None)
    known = quotas(parts)
    if team is None or None in parts.teams or team.name not in known:
        return
    others: list[tuple[Quota, Quota]] = [(slack_quota(parts.queueing, parts.pool), {})]
    others += [(known[other.name], other.lending_limit.amounts()) for other in _others(parts, team)]
    own, borrowing = known[team.name], team.borrowing_limit.amounts()
    needs: Mapping[str, Quantity] = {
        **{resource: amount * job.pods for resource, amount in job.requests.items()},
        names.PODS: Quantity.parse(job.pods),
    }
    for resource, need in needs.items():
        lent = _sum(lending.get(resource, quota[resource]) for quota, lending in others)
        borrowed = min(lent, borrowing.get(resource, lent))
        if own[resource] + borrowed < need:
            yield Problem(
                path=(*job.path, job.size),
                value=job.pods,
                wrong=f"{job.what} needs {need} {resource}, and team {team.name} can never have more than "
                f"{own[resource] + borrowed}: {own[resource]} of its own and {borrowed} that it may borrow",
                allowed=f"a job that asks for at most {own[resource] + borrowed} {resource} in all",
                fix="ask for less, raise the team's quota, or raise the limits on borrowing and lending",
            )


def _others(parts: Parts, team: TeamSettings) -> Iterator[TeamSettings]:
    return (other for other in parts.teams if other is not None and other is not team)


def _sum(amounts: Iterable[Quantity]) -> Quantity:
    return sum(amounts, start=ZERO)
