"""Which writer set each field of an object, from its `metadata.managedFields`.

Each entry holds a tree (FieldsV1). Its keys are `f:<name>` for a field, `k:<keys as JSON>` and `v:<value as JSON>` for
an item of a list, `i:<index>`, and `.` for the node itself. An atomic list has no nodes below it
(sigs.k8s.io/structured-merge-diff, `fieldpath/serialize-pe.go`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from drift.controllers import CHECK, tasks
from runner.properties import WILDCARD, Path  # noqa: TID251 - a notation

Tree = Mapping[str, Any]

ITSELF: Final = "."

_APPLIES: Final = "Apply"

ENGINE: Final = "pulumi-kubernetes"
"""Field manager of the provider's creates. Its updates move these fields to the object's own manager, named like this
one and 8 hexadecimal digits (pulumi-kubernetes, `provider/pkg/provider/provider.go`)."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The writer of a field. manager: its name in the API server. time: None if the server does not record it."""

    manager: str
    time: datetime | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Fields that one field manager wrote by one operation. Fields outside a controller's task are a separate entry.

    operation: `Apply` or `Update`. is_task: whether a known controller writes these fields as part of its task.
    """

    writer: Writer
    tree: Tree
    operation: str
    subresource: str
    is_task: bool

    @property
    def of_check(self) -> bool:
        """Return whether this check applied the fields in a dry run."""
        return self.writer.manager == CHECK and self.operation == _APPLIES

    @property
    def foreign(self) -> bool:
        """Return whether others than the stack and this check wrote the fields, except those in `status`."""
        name = self.writer.manager
        ours = name == ENGINE or name.startswith(f"{ENGINE}-") or self.of_check
        return not ours and self.subresource != "status"

    def below(self, key: str) -> Entry:
        """Return the part of the entry below a key of its tree."""
        return replace(self, tree=self.tree[key])

    @property
    def of_a_person(self) -> bool:
        """Return whether the fields are foreign and outside a known controller's task."""
        return self.foreign and not self.is_task


def entries(manifest: Mapping[str, Any]) -> list[Entry]:
    """Return the managed fields of an object. A known controller's fields beyond its task are a separate entry."""
    found = []
    for item in (manifest.get("metadata") or {}).get("managedFields") or ():
        whole = Entry(
            writer=Writer(manager=str(item.get("manager", "")), time=_time(item.get("time"))),
            tree=item.get("fieldsV1") or {},
            operation=str(item.get("operation", "")),
            subresource=str(item.get("subresource") or ""),
            is_task=False,
        )
        paths = tasks(whole.writer.manager, str(manifest["kind"]))
        if whole.of_check or not paths:
            found.append(whole)
            continue
        inside, outside = _split(whole.tree, paths)
        found += [replace(whole, tree=inside, is_task=True)] if inside else []
        found += [replace(whole, tree=outside)] if outside else []
    return found


def owner(manifest: Mapping[str, Any], path: Sequence[str | int]) -> Entry | None:
    """Return the entry whose manager wrote the field at a path of an object, None if it is not recorded.

    A missing field, or an item -1 of a list, belongs to the manager that owns all of its parent.

    Several managers own a field if each applied the same value. It then counts as a person's first, as a controller's
    second and as the stack's last. Of several persons, the last one counts.
    """
    found = []
    for entry in entries(manifest):
        depth = _depth(entry.tree, manifest, path)
        if depth:
            rank = (depth, entry.of_a_person, entry.foreign, _seconds(entry.writer))
            found.append((rank, entry))
    return max(found, key=lambda each: each[0])[1] if found else None


def last_person(manifest: Mapping[str, Any]) -> Writer | None:
    """Return the last writer of an object other than the stack and known controllers, or None."""
    found = [entry.writer for entry in entries(manifest) if entry.of_a_person]
    return max(found, key=_seconds, default=None)


def items(tree: Tree) -> Iterator[tuple[str, str, Tree]]:
    """Yield for each node below: its key in the tree, the field's name (empty for a list item) and its subtree."""
    for key, below in tree.items():
        if key != ITSELF:
            yield key, key[2:] if key.startswith("f:") else "", below


def index_of(key: str, values: Sequence[Any]) -> int | None:
    """Return the index of the list item that a key of a tree names, None if the list does not have it."""
    sort, _, text = key.partition(":")
    wanted = json.loads(text)
    if sort == "i":
        return wanted if wanted < len(values) else None
    for index, value in enumerate(values):
        if sort == "v" and value == wanted:
            return index
        if sort == "k" and isinstance(value, dict) and all(value.get(name) == part for name, part in wanted.items()):
            return index
    return None


def _split(tree: Tree, paths: Sequence[Path]) -> tuple[Tree, Tree]:
    """Return the part of a tree at or below one of the paths, and the rest.

    A node above a path belongs to neither part: writing into an item does not add the item.
    """
    inside: dict[str, Any] = {}
    outside: dict[str, Any] = {}
    for key, name, below in items(tree):
        ends = [path[1:] for path in paths if path[0] == (name or WILDCARD)]
        if () in ends:
            inside[key] = below
            continue
        within, beside = _split(below, ends) if ends and below else ({}, below)
        if within:
            inside[key] = within
        if beside or not within:
            outside[key] = beside or below
    if outside and ITSELF in tree:
        outside[ITSELF] = {}
    return inside, outside


def _depth(tree: Tree, value: Any, path: Sequence[str | int]) -> int:
    """Return how many path elements an entry owns: all, fewer if a list is owned as a whole, or 0."""
    for at, part in enumerate(path):
        if not tree:
            return at
        if isinstance(part, str):
            key = f"f:{part}" if f"f:{part}" in tree else None
        else:
            key = next((key for key, name, _ in items(tree) if not name and index_of(key, value) == part), None)
        if key is None or (isinstance(part, str) and part not in value):
            return 0
        tree, value = tree[key], value[part]
    return len(path)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _seconds(who: Writer) -> float:
    return who.time.timestamp() if who.time else 0.0
