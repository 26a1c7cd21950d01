"""What an update would do, and what a preview can know, by the facts of the schema.

As Terraform's SDK does it behind the official provider (terraform-plugin-sdk v2, helper/schema/schema.go), the new
inputs are compared with the recorded state and not with the old inputs, so that what a refresh has found is put right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emulator.openstack_provider.schema import DEFAULTS, Property, is_empty
from emulator.plugin.diffing import Change
from emulator.plugin.paths import Path
from emulator.plugin.wire import UNKNOWN

Values = Mapping[str, Any]
Found = Iterator[tuple[Path, Change]]


def changes(state: Values, news: Values, properties: Mapping[str, Property]) -> dict[Path, Change]:
    """Return how the new inputs differ from the state, by path."""
    return dict(_object(state, news, properties, (), False))


def changed(state: Values, news: Values, properties: Mapping[str, Property]) -> frozenset[str]:
    """Return which properties differ."""
    return frozenset(str(path[0]) for path in changes(state, news, properties))


def planned(state: Values | None, news: Values, properties: Mapping[str, Property]) -> dict[str, Any]:
    """Return the state as far as it is known before the call. state: None where the resource does not exist yet."""
    found: dict[str, Any] = {}
    for name, each in properties.items():
        value = news.get(name) if each.is_input else None
        before = None if state is None else state.get(name)
        if value is not None:
            found[name] = _planned(value, before, each, new=state is None)
        elif each.computed and state is None:
            found[name] = UNKNOWN
        elif each.computed and before is not None:
            found[name] = before
    return found


def _planned(value: Any, before: Any, of: Property, *, new: bool) -> Any:
    if of.of and isinstance(value, dict):
        return planned(None if new or not isinstance(before, dict) else before, value, of.of)
    if of.of and isinstance(value, list):
        old = before if isinstance(before, list) and of.kind == "list" else []
        return [
            _planned(each, old[index] if index < len(old) else None, of, new=new or index >= len(old))
            for index, each in enumerate(value)
        ]
    return of.in_state(value)


def _object(old: Values, new: Values, properties: Mapping[str, Property], path: Path, forced: bool) -> Found:
    for name, each in properties.items():
        if each.is_input:
            yield from _value(old.get(name), new.get(name), each, (*path, name), forced or each.replaces)


def _value(old: Any, new: Any, of: Property, path: Path, forced: bool) -> Found:
    if new is UNKNOWN:
        yield path, _change("ADD" if is_empty(old) else "UPDATE", of, forced)
    elif new is None or (isinstance(new, list | dict) and not new):
        if not of.computed and not is_empty(old):
            yield path, _change("DELETE", of, forced or _forces(old, of))
    elif of.single and of.of and not old:
        yield path, Change("ADD", replaces=forced or _forces(new, of))
    elif of.single and of.of:
        yield from _object(old, new, of.of, path, forced)
    elif of.kind == "map":
        yield from _map(old or {}, new, path, forced)
    elif isinstance(new, list) and of.kind == "set":
        yield from _set(old or [], new, of, path, forced)
    elif isinstance(new, list):
        yield from _list(old or [], new, of, path, forced)
    elif of.in_state(new) != old and not (is_empty(new) and is_empty(old)):
        yield path, _change("ADD" if old is None else "UPDATE", of, forced)


def _map(old: Values, new: Values, path: Path, forced: bool) -> Found:
    for key in [*new, *(key for key in old if key not in new)]:
        if key not in new:
            yield (*path, key), Change("DELETE", replaces=forced)
        elif key not in old:
            yield (*path, key), Change("ADD", replaces=forced)
        elif new[key] != old[key]:
            yield (*path, key), Change("UPDATE", replaces=forced)


def _list(old: list[Any], new: list[Any], of: Property, path: Path, forced: bool) -> Found:
    for index, item in enumerate(new):
        if index >= len(old):
            yield (*path, index), Change("ADD", replaces=forced or _forces(item, of))
        else:
            yield from _item(old[index], item, of, (*path, index), forced)
    for index in range(len(new), len(old)):
        yield (*path, index), Change("DELETE", replaces=forced or _forces(old[index], of))


def _set(old: list[Any], new: list[Any], of: Property, path: Path, forced: bool) -> Found:
    left, added = dict(enumerate(old)), {}
    for index, item in enumerate(new):
        same = next((key for key, each in left.items() if not any(_item(each, item, of, (), False))), None)
        if same is None:
            added[index] = item
        else:
            del left[same]
    for index in sorted(added.keys() | left.keys()):
        kind = "UPDATE" if index in added and index in left else "ADD" if index in added else "DELETE"
        forces = any(_forces(each[index], of) for each in (added, left) if index in each)
        yield (*path, index), Change(kind, replaces=forced or forces)


def _item(old: Any, new: Any, of: Property, path: Path, forced: bool) -> Found:
    if of.of and isinstance(new, dict):
        yield from _object(old if isinstance(old, dict) else {}, new, of.of, path, forced)
    elif new != old:
        yield path, Change("UPDATE", replaces=forced)


def _change(kind: str, of: Property, forced: bool) -> Change:
    return Change(kind, replaces=forced or any(each.replaces for each in of.of.values()))


def _forces(item: Any, of: Property) -> bool:
    """Tell whether something in an object forces a replacement where the object comes or goes."""
    objects = item if isinstance(item, list) else [item]
    return any(
        each.replaces and not is_empty(value.get(name))
        for value in objects
        if isinstance(value, dict)
        for name, each in of.of.items()
        if name != DEFAULTS
    )
