"""Checks quotas against nodes, limits against quotas, and teams against queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.config.errors import ConfigError, Path, key, listed, nearest
from stacks.derived.partial import PartialSettings
from stacks.derived.quotas import EmptyShare, empty_shares
from stacks.settings.model import SettingsModel
from stacks.settings.tenancy import QueueingSettings, TeamPoolSettings, TeamSettings, TenancySettings
from stacks.validation import admission, versions

_ALWAYS_NEEDED: Final = (names.CPU, names.MEMORY, names.PODS)
"""Resources that every pod uses. A queue that has and may borrow none of one admits no job."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of quotas and limits."""
    yield from _layers(partial)
    yield from _uncounted(partial)
    yield from _pools(partial)
    yield from _limits(partial)
    for each in partial.every_pool:
        yield from _reserve(each)
        yield from _capacity(each)
        if each.which:
            yield from _limits(each)


def warnings(partial: PartialSettings) -> list[str]:
    """Return warnings about shares that give no GPU, and about quotas that ignore the nodes' reserve."""
    return [warning for each in partial.every_pool for warning in _of_pool(each)]


def _of_pool(partial: PartialSettings) -> list[str]:
    if partial.pool is None or partial.undivided is None:
        return []
    return [
        *_into_reserve(partial, partial.pool, partial.undivided),
        *(
            _empty(share, admission.count_key(partial), partial.said)
            for share in empty_shares(partial.known_teams, partial.undivided, partial.pool)
        ),
    ]


def _empty(empty: EmptyShare, count_key: str, said: str) -> str:
    if empty.enough is not None:
        advice = f"raise its share to {empty.enough} to give it one"
    else:
        advice = f"lower the other shares, or raise {count_key}: no share of its own is large enough"
    return (
        f"team {empty.team} gets no GPUs{said}: its share of {empty.share} rounds to 0 of the {empty.left} GPUs that "
        f"the teams with shares divide; {advice}"
    )


def _into_reserve(partial: PartialSettings, pool: NodePool, undivided: Quota) -> Iterator[str]:
    """Yield warnings about quotas that exceed what the nodes have for jobs: admitted jobs may stay pending."""
    for resource, kept in pool.reserved.items():
        total = _sum(quota[resource] for quota in (undivided, *partial.quotas.values()))
        room = pool.resources[resource]
        if room < total <= pool.allocatable[resource]:
            yield (
                f"the quotas of {resource}{partial.said} add up to {total}, but jobs can use {room}: each of "
                f"{pool.count} nodes reserves {kept} for its DaemonSets "
                f"({key(('queueing', 'nodeReserve', resource))}). Admitted jobs may stay pending"
            )


def _teams(partial: PartialSettings) -> Iterator[tuple[int, TeamSettings]]:
    return ((index, team) for index, team in enumerate(partial.teams) if team is not None)


def _layers(partial: PartialSettings) -> Iterator[ConfigError]:
    queueing, tenancy = partial.section(QueueingSettings), partial.section(TenancySettings)
    if not partial.team_names:
        return
    if queueing is not None and not queueing.enabled:
        yield _unqueued("queueing", "there are teams, and they need queues to share the cluster")
    if tenancy is not None and not tenancy.enabled:
        yield _unqueued("tenancy", "there are teams, and without tenancy they have no queues")


def _pools(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of team entries for unknown or duplicate pools."""
    if partial.target is None:
        return
    known = [pool.name for pool in partial.target.further(partial)]
    for index, team in _teams(partial):
        named = [pool.name for pool in team.pools]
        for position, name in enumerate(named):
            if name in known and name not in named[:position]:
                continue
            meant = nearest(name, known)
            yield ConfigError(
                path=("teams", index, "pools", position, "name"),
                value=name,
                message="the team has this pool already" if name in known else "there is no such node pool",
                expected=listed(known) if known else "no pools: the stack has one pool only",
                hint=f"did you mean {meant}?"
                if meant and name not in known
                else f"remove the entry; the team's quota of the first pool is in {key(('teams', index))}",
            )


def _unqueued(section: str, message: str) -> ConfigError:
    return ConfigError(
        path=(section, "enabled"),
        value=False,
        message=message,
        expected="true, or no teams",
        hint="set it to true, or remove the teams",
    )


def _uncounted(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of quotas of pods while queues do not count pods."""
    queueing = partial.section(QueueingSettings)
    if queueing is None or queueing.count_pods:
        return
    given: list[tuple[Path, SettingsModel | None]] = [
        (each.slack_key, each.slack_given) for each in partial.every_pool or [partial]
    ]
    for index, team in _teams(partial):
        parts: list[tuple[Path, TeamSettings | TeamPoolSettings]] = [(("teams", index), team)]
        parts += [(("teams", index, "pools", position), pool) for position, pool in enumerate(team.pools)]
        for where, part in parts:
            places = {"quota": part.quota, "borrowingLimit": part.borrowing_limit, "lendingLimit": part.lending_limit}
            given += [((*where, name), place) for name, place in places.items()]
    for path, section in given:
        if section is not None and names.PODS in section.model_fields_set:
            yield ConfigError(
                path=(*path, names.PODS),
                value=str(getattr(section, names.PODS)),
                message=f"{key(('queueing', 'countPods'))} is false: queues do not count pods",
                expected="nothing",
                hint=f"remove the key, or {key(('queueing', 'countPods'))}",
            )


def _reserve(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield the error of a reserve for DaemonSets that leaves no resources for jobs."""
    pool = partial.pool
    if pool is None:
        return
    for resource, amount in partial.reserved.items():
        has = pool.shape.resources[resource]
        if amount.nano and has <= amount:
            yield ConfigError(
                path=("queueing", "nodeReserve", resource),
                value=str(amount),
                message=f"a node has {has} {resource} in total, so the reserve leaves none for jobs",
                expected=f"less than {has}",
                hint="set it to the requests of the DaemonSets' pods on one node, from `kubectl describe node`",
            )


def _limits(partial: PartialSettings) -> Iterator[ConfigError]:
    for index, team in _teams(partial):
        if team.name not in partial.quotas:
            continue
        quota = partial.quotas[team.name]
        borrowing = partial.borrowing_limits[team.name]
        lending = team.lending_limit.amounts()
        for resource, limit in lending.items():
            if quota[resource] < limit:
                yield ConfigError(
                    path=(*partial.team_key(index), "lendingLimit", resource),
                    value=str(limit),
                    message=f"the team cannot lend more than its quota of {quota[resource]}",
                    expected=f"a quantity from 0 to {quota[resource]}",
                    hint="lower the limit, raise the quota, or remove the limit to lend all idle resources",
                )
        for resource in _needed(partial) if team.quota and partial.which == 0 else ():
            lent = _lent(partial, team, resource)
            if any(_has_or_borrows(each, team, resource) for each in partial.every_pool[1:]):
                continue
            if not quota[resource].nano and (borrowing.get(resource) == ZERO or lent == ZERO):
                yield ConfigError(
                    path=(*partial.team_key(index), "quota", resource),
                    value=str(quota[resource]),
                    message=f"the team has no {resource} and "
                    + ("may not borrow any" if borrowing.get(resource) == ZERO else "no other queue lends any")
                    + ": its jobs could never run",
                    expected="a quota above 0, or a borrowing limit above 0",
                    hint=f"raise the quota, or {key((*partial.team_key(index), 'borrowingLimit', resource))}",
                )


def _has_or_borrows(partial: PartialSettings, team: TeamSettings, resource: str) -> bool:
    """Return whether a team has or may borrow some of a pool's resource. True if that is unknown."""
    quota, limit = partial.quotas.get(team.name), partial.borrowing_limits.get(team.name, {}).get(resource)
    return quota is None or quota[resource] > ZERO or (limit != ZERO and _lent(partial, team, resource) != ZERO)


def _needed(partial: PartialSettings) -> list[str]:
    queueing = partial.section(QueueingSettings)
    return [resource for resource in _ALWAYS_NEEDED if queueing is None or resource in queueing.covered]


def _lent(partial: PartialSettings, team: TeamSettings, resource: str) -> Quantity | None:
    """Return how much of a resource the other queues lend, or None if that is unknown."""
    if partial.slack is None or None in partial.teams:
        return None
    others = [other for other in partial.known_teams if other is not team and other.name in partial.quotas]
    lent = (other.lending_limit.amounts().get(resource, partial.quotas[other.name][resource]) for other in others)
    return _sum(iter((partial.slack[resource], *lent)))


def _capacity(partial: PartialSettings) -> Iterator[ConfigError]:
    """Enforce MLBatch's rule that nominal quotas do not exceed the cluster (QUOTA_MAINTENANCE.md)."""
    pool, queueing = partial.pool, partial.section(QueueingSettings)
    if pool is None or queueing is None or partial.slack is None:
        return
    quotas: list[tuple[str, Quota]] = [(names.SLACK_TEAM, partial.slack), *partial.queues.items()]
    quotas += [(team.name, partial.quotas[team.name]) for _, team in _teams(partial) if team.name in partial.quotas]
    default = "" if partial.slack_given else f" (slack is one node's worth unless {key(partial.slack_key)} is set)"
    for resource in queueing.covered:
        total = _sum(quota[resource] for _, quota in quotas)
        available = pool.allocatable[resource]
        if total <= available or (resource == names.INFINIBAND and not versions.offers_ports(partial)):
            continue
        parted = listed(f"{name} {quota[resource]}" for name, quota in quotas if quota[resource].nano)
        yield ConfigError(
            path=("teams",) if partial.team_names or not partial.queues else (next(iter(partial.queues)),),
            value=f"{resource}: {total}",
            message=f"the quotas of {resource}{partial.said} add up to {total}, {total - available} more than the "
            f"nodes have: {parted}{default}",
            expected=f"at most {available} in total ({pool.count} nodes with {pool.shape.resources[resource]} each)",
            hint=f"lower quotas by {total - available}, or raise {admission.count_key(partial)}",
        )


def _sum(amounts: Iterator[Quantity]) -> Quantity:
    return sum(amounts, start=ZERO)
