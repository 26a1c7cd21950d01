"""Checks quotas against nodes, limits against quotas, and teams against queues."""

from collections.abc import Iterator
from typing import Final

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.config.errors import ConfigError, Path, counted, key, listed, nearest
from stacks.derived.partial import PartialSettings
from stacks.derived.quotas import EmptyShare, empty_shares
from stacks.settings.tenancy import LimitSettings, QueueingSettings, QuotaSettings, TeamSettings, TenancySettings
from stacks.validation import admission, versions
from stacks.validation.walk import apply, sections

_GIB: Final = Quantity.parse("1Gi")
_ALWAYS_NEEDED: Final = (names.CPU, names.MEMORY, names.PODS)
"""Resources that every pod uses. A queue that has and may borrow none of one admits no job."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of quotas and limits."""
    yield from apply(partial, _layers, _uncounted, _pools, _limits)
    for each in partial.every_pool:
        yield from apply(each, _reserve, _capacity)
        if each.which:
            yield from _limits(each)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about shares that give no GPU, and about quotas that ignore the nodes' reserve."""
    for each in partial.every_pool:
        if each.pool is not None and each.undivided is not None:
            yield from _into_reserve(each, each.pool, each.undivided)
            for share in empty_shares(each.known_teams, each.undivided, each.pool):
                yield _empty(share, admission.count_key(each), each.said)


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
        total = sum((quota[resource] for quota in (undivided, *partial.quotas.values())), start=ZERO)
        room = pool.resources[resource]
        if room < total <= pool.allocatable[resource]:
            yield (
                f"the quotas of {resource}{partial.said} add up to {_in_words(resource, total)}, but jobs can use "
                f"{_in_words(resource, room)}: each node reserves {_in_words(resource, kept)} "
                "for its DaemonSets "
                f"({key(('queueing', 'nodeReserve', resource))}). Admitted jobs may stay pending"
            )


def _layers(partial: PartialSettings) -> Iterator[ConfigError]:
    layers = (
        (QueueingSettings, "queueing", "there are teams, and they need queues to share the cluster"),
        (TenancySettings, "tenancy", "there are teams, and without tenancy they have no queues"),
    )
    for kind, name, message in layers if partial.team_names else ():
        section = partial.section(kind)
        if isinstance(section, kind) and not section.enabled:
            yield ConfigError((name, "enabled"), message, "set it to true, or remove mlbatch:teams")


def _pools(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of team entries for unknown or duplicate pools."""
    if partial.target is None:
        return
    known = [pool.name for pool in partial.target.further(partial)]
    for index, team in partial.numbered_teams:
        named = [pool.name for pool in team.pools]
        for position, name in enumerate(named):
            if name in known and name not in named[:position]:
                continue
            meant = nearest(name, known)
            yield ConfigError(
                ("teams", index, "pools", position, "name"),
                "the team has this pool already" if name in known else "there is no such node pool",
                f"did you mean {meant}?"
                if meant and name not in known
                else f"remove the entry; the team's quota of the first pool is in {key(('teams', index))}",
                expected=listed(known) if known else "no pools: the stack has one pool only",
            )


def _uncounted(partial: PartialSettings, queueing: QueueingSettings) -> Iterator[ConfigError]:
    """Yield errors of quotas of pods while queues do not count pods."""
    if queueing.count_pods:
        return
    for path, section in sections(partial):
        if isinstance(section, QuotaSettings | LimitSettings) and names.PODS in section.model_fields_set:
            yield ConfigError(
                (*path, names.PODS),
                "mlbatch:queueing.countPods is false: queues do not count pods",
                "remove the key, or set mlbatch:queueing.countPods to true",
            )


def _reserve(partial: PartialSettings, pool: NodePool) -> Iterator[ConfigError]:
    """Yield the error of a reserve for DaemonSets that leaves no resources for jobs."""
    for resource, amount in partial.reserved.items():
        has = pool.shape.resources[resource]
        if amount.nano and has <= amount:
            yield ConfigError(
                ("queueing", "nodeReserve", resource),
                f"a node has {has} {resource} in total, so the reserve leaves none for jobs",
                "set it to the requests of the DaemonSets' pods on one node, from `kubectl describe node`",
            )


def _limits(partial: PartialSettings) -> Iterator[ConfigError]:
    for index, team in partial.numbered_teams:
        if team.name not in partial.quotas:
            continue
        quota = partial.quotas[team.name]
        borrowing = partial.borrowing_limits[team.name]
        lending = team.lending_limit.amounts()
        for resource, limit in lending.items():
            if quota[resource] < limit:
                yield ConfigError(
                    (*partial.team_key(index), "lendingLimit", resource),
                    f"the team cannot lend more than its quota of {quota[resource]}",
                    f"lower it, raise {key((*partial.team_key(index), 'quota', resource))}, or remove the key; the "
                    "team then lends all idle resources",
                )
        for resource in _needed(partial) if team.quota and partial.which == 0 else ():
            lent = partial.lent(team, resource)
            if any(_has_or_borrows(each, team, resource) for each in partial.every_pool[1:]):
                continue
            if not quota[resource].nano and (borrowing.get(resource) == ZERO or lent == ZERO):
                yield ConfigError(
                    (*partial.team_key(index), "quota", resource),
                    f"the team has no {resource} and "
                    + ("may not borrow any" if borrowing.get(resource) == ZERO else "no other queue lends any")
                    + ": its jobs could never run",
                    f"raise the quota, or {key((*partial.team_key(index), 'borrowingLimit', resource))}",
                )


def _has_or_borrows(partial: PartialSettings, team: TeamSettings, resource: str) -> bool:
    """Return whether a team has or may borrow some of a pool's resource. True if that is unknown."""
    quota, limit = partial.quotas.get(team.name), partial.borrowing_limits.get(team.name, {}).get(resource)
    return quota is None or quota[resource] > ZERO or (limit != ZERO and partial.lent(team, resource) != ZERO)


def _needed(partial: PartialSettings) -> list[str]:
    queueing = partial.section(QueueingSettings)
    return [resource for resource in _ALWAYS_NEEDED if queueing is None or resource in queueing.covered]


def _capacity(partial: PartialSettings, pool: NodePool, queueing: QueueingSettings) -> Iterator[ConfigError]:
    """Enforce MLBatch's rule that nominal quotas do not exceed the cluster (QUOTA_MAINTENANCE.md)."""
    if partial.slack is None:
        return
    teams = [(index, team) for index, team in partial.numbered_teams if team.name in partial.quotas]
    quotas: list[tuple[str, Quota]] = [(names.SLACK_TEAM, partial.slack), *partial.queues.items()]
    quotas += [(team.name, partial.quotas[team.name]) for _, team in teams]
    given: list[tuple[Path, Quota]] = [(partial.slack_key, partial.slack)]
    given += [((*partial.team_key(index), "quota"), team.quota.amounts()) for index, team in teams if team.quota]
    default = "" if partial.slack_given else f" (slack is one node's worth unless {key(partial.slack_key)} is set)"
    for resource in queueing.covered:
        total = sum((quota[resource] for _, quota in quotas), start=ZERO)
        available = pool.allocatable[resource]
        if total <= available or (resource == names.INFINIBAND and not versions.offers_ports(partial)):
            continue
        largest = max(given, key=lambda entry: entry[1][resource])[0]
        excess = _rounded_up(resource, total - available)
        parted = listed(
            f"{name} {_in_words(resource, quota[resource])}" for name, quota in quotas if quota[resource].nano
        )
        yield ConfigError(
            ("teams",) if partial.team_names or not partial.queues else (next(iter(partial.queues)),),
            f"the quotas of {resource}{partial.said} add up to {_in_words(resource, total)}, {excess} more than the "
            f"nodes have: {parted}{default if partial.slack[resource].nano else ''}",
            f"lower {key((*largest, resource))}, or several of these quotas, by {excess} in total; or "
            f"{admission.more_room(partial)}",
            expected=f"at most {_in_words(resource, available)} in total ({counted(pool.count, 'node')} of "
            f"{_in_words(resource, pool.shape.resources[resource])})",
        )


def _in_words(resource: str, amount: Quantity) -> str:
    """Return an amount that is easy to compare with others: memory in GiB, to two decimals."""
    gib = f"{amount.nano / _GIB.nano:.2f}".rstrip("0").rstrip(".")
    return f"{gib} GiB" if resource == names.MEMORY else str(amount)


def _rounded_up(resource: str, amount: Quantity) -> str:
    """Return an amount to lower quotas by: memory in whole GiB."""
    return f"{-(-amount.nano // _GIB.nano)} GiB" if resource == names.MEMORY else str(amount)
