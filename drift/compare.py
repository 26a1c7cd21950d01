"""Compare the object in the cluster with the declared one. Pure functions: objects in, differences out.

The API server computes the object with all that is declared. A forced server-side apply as a dry run does this: it
knows the kind's defaults, canonical values and atomic lists. The result still contains all additions by others.
`settled` removes the additions that are not allowed. What then differs from the object in the cluster is drift.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from drift import closed, fields
from drift.controllers import CHECK
from drift.fields import Entry, Tree, Writer
from drift.lists import names_of, pairs
from drift.state import SECRET, Declared, Manifest
from runner.properties import WILDCARD  # noqa: TID251 - a notation
from runner.properties import Path as Names  # noqa: TID251 - a notation


@dataclass(frozen=True)
class Item:
    """An item of a list, in the path of a difference.

    index: in the cluster's list, or in the declared one if the cluster's lacks it. name: if the items of the list
    have names.
    """

    index: int
    name: str | None


Path = tuple[str | Item, ...]


class Absent:
    """Marks a value that does not exist."""


ABSENT: Final = Absent()

_OF_SERVER: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""Metadata that only the API server writes."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A field that differs from what is declared.

    declared, live: both values, ABSENT for none, SECRET for those that are not shown.
    writer: who wrote the value in the cluster, None if it is not recorded. Deletions are not recorded.
    suspect: in that case, the last writer of the object other than the stack and known controllers.
    """

    path: Path
    declared: Any
    live: Any
    writer: Writer | None
    suspect: Writer | None = None


def appliable(declared: Declared, live: Manifest | None) -> Manifest:
    """Return the declared object in a form that can be applied. Encrypted values are the cluster's, or left out."""
    filled: Manifest = _filled(declared.manifest, live if live is not None else ABSENT)
    return filled


def has_secrets(declared: Declared) -> bool:
    """Return whether a part of the declared object is encrypted. It cannot be written without decryption."""
    return any(True for _ in _secrets(declared.manifest, declared.manifest, ()))


def settled(declared: Declared, applied: Manifest, live: Manifest) -> Manifest:
    """Return the expected object.

    applied: the API server's answer to the apply of the declared object. Additions by others are removed where they are
    not allowed. Fields that controllers write, or the program ignores, are as in the cluster.
    """
    target = copy.deepcopy(applied)
    if not declared.partial:
        written = fields.entries(applied)
        own = next((entry.tree for entry in written if entry.of_check), {})
        target = _without_items(target, own, [entry for entry in written if not entry.of_check], declared)
        for entry in written:
            if entry.of_a_person:
                target = _without_fields(target, own, entry.tree, declared.kind, ())
    metadata = {key: value for key, value in target["metadata"].items() if key not in _OF_SERVER}
    metadata |= {key: value for key, value in live["metadata"].items() if key in _OF_SERVER}
    target["metadata"] = metadata
    for names in (("status",), *closed.of_controllers(declared.kind), *declared.ignored):
        target = _as_it_lives(target, live, names)
    return target


def overlaid(fresh: Manifest, live: Manifest) -> Manifest:
    """Return the cluster's object with the fields of a fresh one, if the API server rejects the apply on the former.

    fresh: the API server's answer to the apply of the declared object under a name that does not exist.
    """
    tree = next(entry.tree for entry in fields.entries(fresh) if entry.of_check)
    result: Manifest = _overlaid(tree, fresh, live)
    mine = [item for item in fresh["metadata"]["managedFields"] if item["manager"] == CHECK]
    result["metadata"]["managedFields"] = [*(live["metadata"].get("managedFields") or ()), *mine]
    return result


def differences(declared: Declared, target: Manifest, live: Manifest) -> tuple[Difference, ...]:
    """Return where the cluster's object differs from the expected one.

    target: the expected object, see `settled`. For an encrypted value, only the writer can be compared.
    """
    hidden = _secret_paths(declared)
    found = [_difference(path, wanted, value, live, hidden) for path, wanted, value in _differing(target, live, ())]
    counted = [
        each
        for each in found
        if each.writer is None or not closed.is_left_to(declared.kind, _names(each.path), each.writer.manager)
    ]
    return (*counted, *_rewritten_secrets(declared, live))


def render(path: Path) -> str:
    """Write a path as `spec.template.spec.containers[name="manager"].image`, `subjects[1]`."""
    text = ""
    for part in path:
        if isinstance(part, Item):
            text += f"[{part.index}]" if part.name is None else f'[name="{part.name}"]'
        elif any(character in part for character in './"[]'):
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text


def _filled(value: Any, live: Any) -> Any:
    if value is SECRET:
        return live
    if isinstance(value, dict):
        below = live if isinstance(live, dict) else {}
        filled = {key: _filled(item, below.get(key, ABSENT)) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item is not ABSENT}
    if isinstance(value, list):
        others = live if isinstance(live, list) else []
        partner = {mine: theirs for mine, theirs in pairs(value, others) if mine is not None}
        return [
            _filled(item, ABSENT if (at := partner[index]) is None else others[at]) for index, item in enumerate(value)
        ]
    return value


def _without_items(value: Any, own: Tree, others: Sequence[Entry], declared: Declared, names: Names = ()) -> Any:
    """Remove list items that neither the stack nor a known controller wrote, from lists that the stack declares."""
    if isinstance(value, dict):
        result = dict(value)
        for key, name, below in fields.items(own):
            if name in result:
                inner = [entry.below(key) for entry in others if key in entry.tree]
                result[name] = _without_items(result[name], below, inner, declared, (*names, name))
        return result
    if not isinstance(value, list) or closed.is_open(declared.kind, names):
        return value
    granular = any(True for entry in others for _ in fields.items(entry.tree))
    if not own and not granular:
        return value  # applied as a whole
    kept: dict[int | None, tuple[Tree, list[Entry]]] = {}
    for entry in others:
        if entry.foreign and entry.is_task:
            added = [key for key, _, below in fields.items(entry.tree) if not below or fields.ITSELF in below]
            kept |= {fields.index_of(key, value): ({}, []) for key in added}
    for key, _, below in fields.items(own):
        inner = [entry.below(key) for entry in others if key in entry.tree]
        kept[fields.index_of(key, value)] = (below, inner)
    return [_without_items(item, *kept[index], declared, names) for index, item in enumerate(value) if index in kept]


def _without_fields(value: Any, own: Tree, theirs: Tree, kind: str, names: Names) -> Any:
    """Remove fields that others set and the stack leaves out on purpose."""
    if isinstance(value, list):
        result = list(value)
        for key, _, below in fields.items(theirs):
            index = fields.index_of(key, value)
            if index is not None and key in own and below:
                result[index] = _without_fields(value[index], own[key], below, kind, names)
        return result
    if not isinstance(value, dict):
        return value
    remaining = dict(value)
    for key, name, below in fields.items(theirs):
        if name not in remaining:
            continue
        here = (*names, name)
        is_closed = closed.is_closed(kind, here)
        whole = is_closed and fields.ITSELF in below
        if key in own or (below and not whole and isinstance(remaining[name], dict)):
            remaining[name] = _without_fields(remaining[name], own.get(key, {}), below, kind, here)
        elif is_closed:
            del remaining[name]
    return remaining


def _as_it_lives(target: Any, live: Any, names: Names) -> Any:
    head, rest = names[0], names[1:]
    if head == WILDCARD and isinstance(target, list) and isinstance(live, list):
        partner = {mine: theirs for mine, theirs in pairs(target, live) if mine is not None}
        return [
            item if (at := partner[index]) is None else _as_it_lives(item, live[at], rest) if rest else live[at]
            for index, item in enumerate(target)
        ]
    if not isinstance(target, dict) or not isinstance(live, dict):
        return target
    if rest:
        return (
            {**target, head: _as_it_lives(target[head], live[head], rest)}
            if head in target and head in live
            else target
        )
    others = {key: value for key, value in target.items() if key != head}
    return {**others, head: live[head]} if head in live else others


def _overlaid(tree: Tree, fresh: Any, live: Any) -> Any:
    if not list(fields.items(tree)):
        return fresh
    if isinstance(fresh, dict):
        result = dict(live) if isinstance(live, dict) else {}
        for _, name, below in fields.items(tree):
            result[name] = _overlaid(below, fresh[name], result.get(name))
        return result
    items = list(live) if isinstance(live, list) else []
    for key, _, below in fields.items(tree):
        mine, theirs = fields.index_of(key, fresh), fields.index_of(key, items)
        if mine is None:
            continue
        if theirs is None:
            items.append(fresh[mine])
        else:
            items[theirs] = _overlaid(below, fresh[mine], items[theirs])
    return items


def _differing(target: Any, live: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(target, dict) and isinstance(live, dict):
        for key in sorted({*target, *live}):
            yield from _differing(target.get(key, ABSENT), live.get(key, ABSENT), (*path, key))
    elif isinstance(target, list) and isinstance(live, list):
        yield from _differing_lists(target, live, path)
    elif target != live:
        yield path, target, live


def _differing_lists(target: Sequence[Any], live: Sequence[Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    names, others = names_of(target), names_of(live)
    named = names is not None and others is not None
    if names and others and _common(names, others) != _common(others, names):
        yield path, names, others
        return
    for mine, theirs in pairs(target, live):
        wanted: Any = ABSENT if mine is None else target[mine]
        value: Any = ABSENT if theirs is None else live[theirs]
        name = (value if mine is None else wanted)["name"] if named else None
        index = theirs if theirs is not None else mine
        yield from _differing(wanted, value, (*path, Item(index or 0, name)))


def _common(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return [name for name in names if name in others]


def _difference(path: Path, wanted: Any, value: Any, live: Manifest, hidden: Sequence[Names]) -> Difference:
    entry = fields.owner(live, _indexes(path, gone=value is ABSENT))
    if any(_overlap(_names(path), secret) for secret in hidden):
        wanted, value = (item if item is ABSENT else SECRET for item in (wanted, value))
    writer = entry.writer if entry is not None else None
    suspect = fields.last_person(live) if writer is None else None
    return Difference(path=path, declared=wanted, live=value, writer=writer, suspect=suspect)


def _rewritten_secrets(declared: Declared, live: Manifest) -> Iterator[Difference]:
    """Yield encrypted fields of the stack that another writer has changed or removed."""
    for path, value in _secrets(declared.manifest, live, ()):
        if value is ABSENT:
            yield Difference(path=path, declared=SECRET, live=ABSENT, writer=None, suspect=fields.last_person(live))
            continue
        inner = [(*path, key) for key in value] if isinstance(value, dict) else [path]
        for each in inner:
            entry = fields.owner(live, _indexes(each, gone=False))
            if entry is not None and entry.of_a_person:
                yield Difference(path=each, declared=SECRET, live=SECRET, writer=entry.writer)


def _secrets(value: Any, live: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if value is SECRET:
        yield path, live
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets(item, live.get(key, ABSENT) if isinstance(live, dict) else ABSENT, (*path, key))
    elif isinstance(value, list) and isinstance(live, list):
        for mine, theirs in pairs(value, live):
            if mine is not None and theirs is not None:
                yield from _secrets(value[mine], live[theirs], (*path, Item(theirs, None)))


def _secret_paths(declared: Declared) -> list[Names]:
    found = [_names(path) for path, _ in _secrets(declared.manifest, declared.manifest, ())]
    return [*found, ("data",), ("stringData",)] if declared.kind == "Secret" else found


def _overlap(one: Names, other: Names) -> bool:
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))


def _names(path: Path) -> Names:
    return tuple(part if isinstance(part, str) else WILDCARD for part in path)


def _indexes(path: Path, *, gone: bool) -> list[str | int]:
    parts: list[str | int] = [part if isinstance(part, str) else part.index for part in path]
    if gone and not isinstance(parts[-1], str):
        parts[-1] = -1
    return parts
