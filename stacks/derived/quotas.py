"""What each queue may use: given amounts, or shares of what the GPU nodes have."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from components import names
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.settings.tenancy import LARGEST_SHARE, QuotaSettings, TeamSettings

_ONE: Final = Quantity.parse(1)
_PIECES: Final = {names.MEMORY: Quantity.parse("1Gi")}
"""The smallest piece of a resource that is handed out; one of all others."""


@dataclass(frozen=True, kw_only=True)
class Division:
    """What queues have of a node pool.

    fabric: what a pod that takes a whole node asks of the network.
    slack: the slack queue's quota. quotas, borrowing_limits, lending_limits: the teams', by name.
    """

    pool: NodePool
    fabric: Fabric
    slack: Quota
    quotas: Mapping[str, Quota]
    borrowing_limits: Mapping[str, Quota]
    lending_limits: Mapping[str, Quota]


def slack_quota(given: QuotaSettings | None, pool: NodePool) -> Quota:
    """Return the slack queue's quota of a pool by resource: the given one, or the default."""
    if given is not None:
        return given.amounts()
    if pool.count > 1:
        return pool.for_jobs
    return dict.fromkeys(names.RESOURCES, ZERO)


def team_quotas(teams: Sequence[TeamSettings], undivided: Quota, pool: NodePool) -> Mapping[str, Quota]:
    """Return each team's quota by team and resource. undivided: of the slack queue and the target's own queues.

    Teams with shares divide what these queues and the teams with quotas leave, in whole pieces (memory in GiB), by
    largest remainder: each has the whole pieces of its exact part, and what is left goes piece by piece to those whose
    part was cut the most. Among equals the team's name decides, and never the order of the settings.
    """
    given = {team.name: team.quota.amounts() for team in teams if team.quota is not None}
    left = _left(teams, undivided, pool)
    shares = _shares(teams)
    divided = {resource: _divided(left[resource], shares, resource) for resource in names.RESOURCES}
    shared = {name: {resource: divided[resource][name] for resource in names.RESOURCES} for name in shares}
    return {team.name: given.get(team.name) or shared[team.name] for team in teams}


@dataclass(frozen=True, kw_only=True)
class EmptyShare:
    """A team whose share gives it no GPU.

    left: how many GPUs the teams with shares divide. enough: the smallest share that would give the team one, the
    others' as they are; None where no share can.
    """

    team: str
    share: int
    left: int
    enough: int | None


def empty_shares(teams: Sequence[TeamSettings], undivided: Quota, pool: NodePool) -> list[EmptyShare]:
    """Return the teams whose shares give them no GPU, of nodes that have GPUs. undivided: as for quotas."""
    if not pool.resources[names.GPU].nano:
        return []
    left = _left(teams, undivided, pool)[names.GPU]
    shares = _shares(teams)
    divided = _divided(left, shares, names.GPU)

    def suffices(name: str, share: int) -> bool:
        return bool(_divided(left, {**shares, name: share}, names.GPU)[name].nano)

    return [
        EmptyShare(
            team=name,
            share=share,
            left=left // piece(names.GPU),
            enough=_first(range(share + 1, LARGEST_SHARE + 1), partial(suffices, name)),
        )
        for name, share in shares.items()
        if not divided[name].nano
    ]


def _first(shares: range, suffices: Callable[[int], bool]) -> int | None:
    """Return the smallest share that suffices, None where none does. A larger share never gives less."""
    index = bisect_left(shares, True, key=suffices)
    return shares[index] if index < len(shares) else None


def _left(teams: Sequence[TeamSettings], undivided: Quota, pool: NodePool) -> Quota:
    given = [team.quota.amounts() for team in teams if team.quota is not None]
    return {resource: pool.resources[resource] - _sum(resource, [undivided, *given]) for resource in names.RESOURCES}


def _shares(teams: Sequence[TeamSettings]) -> dict[str, int]:
    return {team.name: team.share or 1 for team in teams if team.quota is None}


def _sum(resource: str, quotas: Sequence[Quota]) -> Quantity:
    return sum((quota[resource] for quota in quotas), start=ZERO)


def piece(resource: str) -> Quantity:
    """Return the smallest amount of a resource that is handed out."""
    return _PIECES.get(resource, _ONE)


def _divided(amount: Quantity, shares: Mapping[str, int], resource: str) -> dict[str, Quantity]:
    """Divide the whole pieces of an amount in proportion to shares, by largest remainder."""
    if not shares:
        return {}
    one, total = piece(resource), sum(shares.values())
    pieces = amount // one
    parts = {name: pieces * share // total for name, share in shares.items()}
    most_cut = sorted(shares, key=lambda name: (-(pieces * shares[name] % total), name))
    for name in most_cut[: pieces - sum(parts.values())]:
        parts[name] += 1
    return {name: one * part for name, part in parts.items()}
