"""Compare one revision's stack with another's: created, changed, replaced and deleted resources. Pure functions."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from review import replacement
from review.plan import UNKNOWN, Plan, Resource
from runner.properties import Path, render

ABSENT: Final = object()
"""Value of a property on the side that does not have it."""


class Operation(StrEnum):
    """What an update does to a resource, most dangerous first."""

    DELETE = "delete"
    REPLACE = "replace"
    CHANGE = "change"
    CREATE = "create"


@dataclass(frozen=True, kw_only=True)
class PropertyChange:
    """One input that differs. before, after: ABSENT on the side without it. forces: it makes the provider replace."""

    path: str
    before: Any
    after: Any
    forces: bool = False


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens to one resource.

    resource: from the new revision, or from the old one for a deletion.
    because: the reason for a replacement that the resource's inputs do not explain.
    cause: the resource whose replacement or deletion causes this change. None if the change has no other cause.
    """

    operation: Operation
    resource: Resource
    layer: str
    team: str | None
    properties: tuple[PropertyChange, ...] = ()
    because: str = ""
    cause: Resource | None = None


@dataclass(frozen=True)
class Comparison:
    """All changes of a stack, grouped by layer and team, in an order that does not depend on the engine."""

    changes: tuple[Change, ...]

    def count(self, operation: Operation) -> int:
        """Return how many resources have this operation."""
        return Counter(change.operation for change in self.changes)[operation]


_NOTHING: Final = Plan({})
_PROTECTED: Final = "protect"
"""An option of the engine that is not an input. Without it, an update or a destroy may delete data."""


def compare(before: Plan | None, after: Plan | None) -> Comparison:
    """Return what an update from one plan to the other does. None means that the revision does not have the stack.

    Components are not counted, because they are groups of resources. Values of secrets are not compared, because plans
    do not contain them.
    """
    old, new = before or _NOTHING, after or _NOTHING
    pairs = dict(_pairs(old, new))
    changes = {
        urn: change
        for urn, resource in new.resources.items()
        if resource.custom and (change := _change(resource, pairs, old, new)) is not None
    }
    _follow(changes, pairs, new)
    kept = {resource.urn for resource in pairs.values()}
    gone = {urn: resource for urn, resource in old.resources.items() if resource.custom and urn not in kept}
    return Comparison(tuple(sorted([*changes.values(), *_deletions(gone, old)], key=_rank)))


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the innermost paths where two values differ, with both values. Lists are compared item by item."""
    if before == after and type(before) is type(after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            mine = before[index] if index < len(before) else ABSENT
            theirs = after[index] if index < len(after) else ABSENT
            yield from differences(mine, theirs, (*path, index))
    else:
        yield path, before, after


def shown(path: Path, *sides: Any) -> str:
    """Return a path for the reader. Items of a list appear by name if they have one, otherwise by index.

    sides: the values that contain the path. The first that has the item decides.
    """
    text = ""
    for at, part in enumerate(path):
        items = [_at(side, path[: at + 1]) for side in sides] if isinstance(part, int) else []
        names = [item["name"] for item in items if isinstance(item, Mapping) and isinstance(item.get("name"), str)]
        rendered = f"[{names[0]}]" if names and names[0] != UNKNOWN else render((part,))
        text += rendered if not text or rendered.startswith("[") else f".{rendered}"
    return text


def _at(value: Any, path: Path) -> Any:
    """Return the value at a path, None if it does not exist."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _pairs(old: Plan, new: Plan) -> Iterator[tuple[str, Resource]]:
    """Yield each new resource's URN with the old resource of the same name or alias."""
    for urn, resource in new.resources.items():
        for name in (urn, *resource.aliases):
            if name in old.resources and (name == urn or name not in new.resources):
                yield urn, old.resources[name]
                break


def _of(plan: Plan, resource: Resource, operation: Operation, **fields: Any) -> Change:
    layer, team = plan.layer(resource), plan.team(resource)
    return Change(operation=operation, resource=resource, layer=layer, team=team, **fields)


def _change(resource: Resource, pairs: Mapping[str, Resource], old: Plan, new: Plan) -> Change | None:
    change = _of(new, resource, Operation.CREATE)
    former, provider = pairs.get(resource.urn), new.resources.get(resource.provider)
    if former is None:
        return change
    found = tuple(
        PropertyChange(
            path=shown(path, resource.inputs, former.inputs),
            before=mine,
            after=theirs,
            forces=_forces(resource, path, theirs, provider.inputs if provider else {}),
        )
        for path, mine, theirs in differences(former.inputs, resource.inputs)
        if not any(replacement.covers(pattern, path) for pattern in resource.ignore_changes)
    )
    if former.protected is not resource.protected:
        found += (PropertyChange(path=_PROTECTED, before=former.protected, after=resource.protected),)
    if former.provider not in (resource.provider, *(provider.aliases if provider else ())):
        because = "another provider creates it"
        cause = provider if provider and provider.urn not in pairs else None
        return replace(change, operation=Operation.REPLACE, properties=found, because=because, cause=cause)
    if not found:
        return None
    forced = any(each.forces for each in found)
    return replace(change, operation=Operation.REPLACE if forced else Operation.CHANGE, properties=found)


def _forces(resource: Resource, path: Path, after: Any, provider: Mapping[str, Any]) -> bool:
    if any(replacement.overlaps(pattern, path) for pattern in resource.replace_on_changes):
        return True
    return replacement.forces(resource.type, path, None if after is ABSENT else after, resource.inputs, provider)


def _deletions(gone: Mapping[str, Resource], old: Plan) -> Iterator[Change]:
    for resource in gone.values():
        owner = gone.get(resource.deleted_with)
        while owner is not None and owner.deleted_with in gone:
            owner = gone[owner.deleted_with]
        because = f"{owner.title} is deleted" if owner else ""
        yield _of(old, resource, Operation.DELETE, because=because, cause=owner)


def _follow(changes: dict[str, Change], pairs: Mapping[str, Resource], new: Plan) -> None:
    """Add the resources that are replaced because another resource is.

    These are all resources of a replaced provider, resources that the program replaces with another one, and Azure
    resources that take their address or another fixed input from a replaced resource. Contents, such as objects in a
    namespace, are not listed here.
    """
    first = [urn for urn, change in changes.items() if change.operation is Operation.REPLACE]
    # A cluster comes before the provider of its objects. The order does not depend on the engine.
    replaced = deque(sorted(first, key=lambda urn: (replacement.azure_type(new.resources[urn].type) is None, urn)))
    ordered = sorted(new.resources.items())
    while replaced:
        urn = replaced.popleft()
        cause = changes[urn]
        for follower, resource in ordered:
            known = changes.get(follower)
            if follower not in pairs or not resource.custom or (known and known.operation is not Operation.CHANGE):
                continue
            if resource.provider == urn or urn in resource.replace_with or _stands_on(resource, urn):
                changes[follower] = _of(
                    new,
                    resource,
                    Operation.REPLACE,
                    properties=known.properties if known else (),
                    because=f"{cause.resource.title} is replaced",
                    cause=cause.cause or cause.resource,
                )
                replaced.append(follower)


def _stands_on(resource: Resource, cause: str) -> bool:
    return replacement.is_cloud(resource.type) and any(
        cause in urns and replacement.forces(resource.type, (name,), None, resource.inputs, {})
        for name, urns in resource.property_dependencies.items()
    )


_LAYERS: Final = "azure openstack nodes storage scheduling queueing tenancy observability health".split()  # noqa: SIM905


def _rank(change: Change) -> tuple[int, str, str, int, str, str]:
    at = _LAYERS.index(change.layer) if change.layer in _LAYERS else len(_LAYERS)
    order = list(Operation).index(change.operation)
    return at, change.layer, change.team or "", order, change.resource.title, change.resource.urn
