"""Find changes that lose data or a cluster, and what exactly is lost. Dependent losses appear with their cause."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from components.tables import Table  # noqa: TID251 - reads a file, without components
from review.compare import ABSENT, Change, Comparison, Operation
from review.consequences import by_cause
from review.plan import Resource
from review.replacement import azure_type


class _Losses(Table):
    held: Mapping[str, str]


_HELD: Final = _Losses.load(__name__).held
"""What a resource holds, by type."""
_KEPT_CLUSTER: Final = "asked.cluster"
"""Key in the user data that describes the cluster on the volume (components/openstack/first_boot/kept.py)."""
_SIZES: Final = frozenset({"count", "maxCount", "minCount"})
_POOL: Final = "containerservice:AgentPool"


@dataclass(frozen=True)
class Loss:
    """What a change loses, and why.

    lost: what the changed resource itself held, empty if it held no data. along: resources that are replaced or deleted
    with it.
    """

    change: Change
    lost: str
    reason: str
    along: tuple[Change, ...] = ()

    @property
    def lost_along(self) -> Mapping[str, tuple[int, str]]:
        """Return the number of each kind in `along` that holds data, and what each of them holds."""
        held = [(each.resource.kind, lost) for each in self.along if (lost := _held(each.resource))]
        return {kind: (count, lost) for (kind, lost), count in Counter(held).items()}

    @property
    def stops(self) -> int:
        """Return the number of protected resources in `along`, which make the update fail."""
        return sum(each.resource.protected for each in self.along)


def losses(comparison: Comparison) -> Iterator[Loss]:
    """Yield the losses of a stack: replaced or deleted resources with data or a cluster, and smaller pools."""
    taken = by_cause(comparison.changes)
    for change in comparison.changes:
        if change.cause is not None:
            continue
        held, along = _cluster(change) or _held(change.resource), taken.get(change.resource.urn, ())
        loses = change.operation in (Operation.DELETE, Operation.REPLACE) and held is not None
        if loses or any(_held(each.resource) for each in along):
            yield Loss(change, held if loses and held else "", _reason(change), along)
        elif change.operation is Operation.CHANGE and azure_type(change.resource.type) == _POOL:
            yield from _smaller(change)


def _cluster(change: Change) -> str | None:
    """Return the loss if the settings describe another cluster for a VM's volume. kind then recreates the cluster."""
    is_another = change.resource.kind == "UserData" and any(each.path == _KEPT_CLUSTER for each in change.properties)
    return "the cluster on the volume with all of its data, once kind.recreate allows it" if is_another else None


def _held(resource: Resource) -> str | None:
    kind = azure_type(resource.type)
    return _HELD.get(f"azure-native:{kind}" if kind else resource.type)


def _reason(change: Change) -> str:
    reason = _why(change)
    return f"{reason}; it is protected, so the update fails" if change.resource.protected else reason


def _why(change: Change) -> str:
    if change.operation is Operation.DELETE:
        return "the new revision does not declare it"
    if change.operation is Operation.CREATE:
        return "another provider created its objects"
    forced = [each.path for each in change.properties if each.forces]
    return f"{', '.join(forced)} cannot be changed in place" if forced else change.because


def _smaller(change: Change) -> Iterator[Loss]:
    for each in change.properties:
        before, after = each.before, each.after
        if each.path in _SIZES and ABSENT not in (before, after) and _less(after, before):
            yield Loss(change, "the removed machines, with their local disks", f"{each.path} {before} → {after}")


def _less(after: object, before: object) -> bool:
    return isinstance(after, int | float) and isinstance(before, int | float) and after < before
