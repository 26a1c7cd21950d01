"""The quotas of the queues in a plan, and their changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from components.kubernetes.quantity import ZERO, Quantity, QuantityError  # noqa: TID251 - a value without components
from review.plan import Plan

_QUEUES: Final = "ClusterQueue"
_LIMITS: Final = {"nominalQuota": "", "borrowingLimit": " (may borrow)", "lendingLimit": " (may lend)"}


@dataclass(frozen=True)
class QuotaTable:
    """Amounts by queue and resource, before and after. None means a missing amount.

    rows: queues whose amounts differ. total: nominal quota of all queues, by resource.
    unchanged: number of queues without a change.
    """

    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, tuple[str | None, str | None]]]
    total: Mapping[str, tuple[str | None, str | None]]
    unchanged: int


def table(before: Plan | None, after: Plan | None) -> QuotaTable:
    """Return the quotas of two plans, side by side."""
    old, new = _quotas(before), _quotas(after)
    rows = {}
    for queue in sorted(old.keys() | new.keys()):
        mine, theirs = old.get(queue, {}), new.get(queue, {})
        if mine != theirs:
            rows[queue] = {name: (mine.get(name), theirs.get(name)) for name in (*mine, *theirs)}
    sums = _sum(old), _sum(new)
    total = {name: (sums[0].get(name), sums[1].get(name)) for name in (*sums[0], *sums[1])}
    columns = dict.fromkeys(name for row in rows.values() for name in row)
    return QuotaTable(
        columns=tuple(columns), rows=rows, total=total, unchanged=len(old.keys() | new.keys()) - len(rows)
    )


def _quotas(plan: Plan | None) -> dict[str, dict[str, str]]:
    queues: dict[str, dict[str, str]] = {}
    for resource in plan.resources.values() if plan else ():
        if resource.kind == _QUEUES and resource.type.startswith("kubernetes:kueue."):
            amounts = queues.setdefault(resource.title.partition(" ")[2], {})
            for name, limit, amount in _amounts(resource.inputs):
                amounts[f"{name}{_LIMITS[limit]}"] = amount
    return queues


def _amounts(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield resource, kind of limit and amount. Except for the first flavor, its name precedes the resource."""
    for group in inputs.get("spec", {}).get("resourceGroups") or ():
        for position, flavor in enumerate(group.get("flavors") or ()):
            of = f"{flavor.get('name')}: " if position else ""
            for entry in flavor.get("resources") or ():
                for limit in _LIMITS:
                    if limit in entry:
                        yield f"{of}{entry['name']}", limit, str(entry[limit])


def _sum(queues: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    total: dict[str, Quantity] = {}
    for amounts in queues.values():
        for name, amount in amounts.items():
            if name.endswith(")"):
                continue
            try:
                total[name] = total.get(name, ZERO) + Quantity.parse(amount)
            except QuantityError:
                continue
    return {name: str(amount) for name, amount in total.items()}
