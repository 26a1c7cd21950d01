"""What each team may borrow: its own limits, and where Kueue would hold it against the team, bounds by default."""

from collections.abc import Mapping, Sequence

from components import names
from components.compatibility import reclaims_while_borrowing
from components.kubernetes.quantity import ZERO
from components.tenancy.quota import Quota
from stacks.derived.quotas import piece
from stacks.settings.tenancy import TeamSettings


def borrowing_limits(
    teams: Sequence[TeamSettings], quotas: Mapping[str, Quota], slack: Quota, kueue_version: str
) -> Mapping[str, Quota]:
    """Return what each team may borrow at most, by team and resource; a resource left out has no limit.

    quotas: of the teams, by name. slack: the slack queue's quota.

    An older Kueue gives an owner its GPUs back only while the owner's share of what is lent is below the borrower's,
    and a share is the largest of any resource's: an owner that borrows much CPU waits for its own GPUs. There a team
    borrows less of everything else than the part that its GPUs are of all GPUs, so that its share stays below that of a
    borrower who has them all. A limit of the team's own stands as it is; a team that lends no GPU has none to wait for.
    Kueue `pkg/cache/scheduler/fair_sharing.go`, `pkg/scheduler/preemption/fairsharing/strategy.go`.
    """
    own = {team.name: team.borrowing_limit.amounts() for team in teams}
    if reclaims_while_borrowing(kueue_version):
        return own
    lent = {team.name: _lent(quotas[team.name], team.lending_limit.amounts()) for team in teams}
    lendable = {
        resource: sum((amounts[resource] for amounts in lent.values()), start=slack[resource])
        for resource in names.RESOURCES
    }
    return {name: {**_below(lent[name], lendable), **own[name]} for name in own}


def _lent(quota: Quota, limits: Quota) -> Quota:
    return {resource: min(amount, limits.get(resource, amount)) for resource, amount in quota.items()}


def _below(lent: Quota, lendable: Quota) -> Quota:
    """Return the most whole pieces of each resource that stay below the part that the lent GPUs are of all GPUs."""
    part, whole = lent[names.GPU].nano, lendable[names.GPU].nano
    if not part:
        return {}
    return {
        resource: piece(resource) * ((amount.nano * part - 1) // (whole * piece(resource).nano))
        for resource, amount in lendable.items()
        if resource != names.GPU and amount > ZERO
    }
