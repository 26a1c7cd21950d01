"""What each queue may use: given amounts, or shares of what the GPU nodes have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.settings.tenancy import QueueingSettings, TeamSettings

_UNIT: Final = {names.MEMORY: Quantity.parse("1Gi")}
"""The smallest piece of a resource that is handed out; one of all others."""


def slack_quota(queueing: QueueingSettings, pool: NodePool) -> Quota:
    """Return the slack queue's quota by resource: the one that is set, or the default."""
    if queueing.slack is not None:
        return queueing.slack.amounts()
    if pool.count > 1:
        return pool.shape.resources
    return dict.fromkeys(names.RESOURCES, ZERO)


def team_quotas(teams: Sequence[TeamSettings], slack: Quota, pool: NodePool) -> Mapping[str, Quota]:
    """Return each team's quota by team and resource. slack: the slack queue's.

    Teams with shares divide what the slack queue and the teams with quotas leave, in whole pieces (memory in GiB); what
    does not divide goes piece by piece to the first of them.
    """
    given = {team.name: team.quota.amounts() for team in teams if team.quota is not None}
    sharing = [team for team in teams if team.quota is None]
    left = {
        resource: pool.resources[resource] - _sum(resource, [slack, *given.values()]) for resource in names.RESOURCES
    }
    shares = [team.share or 1 for team in sharing]
    partial = {resource: _divided(left[resource], shares, _UNIT.get(resource)) for resource in names.RESOURCES}
    shared = {
        team.name: {resource: partial[resource][index] for resource in names.RESOURCES}
        for index, team in enumerate(sharing)
    }
    return {team.name: given.get(team.name) or shared[team.name] for team in teams}


def _sum(resource: str, quotas: Sequence[Quota]) -> Quantity:
    return sum((quota[resource] for quota in quotas), start=ZERO)


def _divided(amount: Quantity, shares: Sequence[int], unit: Quantity | None) -> list[Quantity]:
    """Divide whole units of an amount in proportion to shares."""
    if not shares:
        return []
    unit = unit or Quantity.parse(1)
    units = amount // unit
    partial = [units * share // sum(shares) for share in shares]
    for index in range(units - sum(partial)):
        partial[index] += 1
    return [unit * part for part in partial]
