"""Where others may add to what the stack declares, and where they may not.

A list that the stack declares is closed: an item that another writer adds is drift. A field that the stack leaves out
is open, so others may set it. The fields in closed.yaml are exceptions, because
leaving them out is a decision.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from components.ownership import RUNTIME_FIELDS
from components.tables import Table
from runner.properties import Path, contains, parse  # noqa: TID251 - a notation


@dataclass(frozen=True, kw_only=True)
class _Left:
    path: str
    manager: str


class _Fields(Table):
    closed: Mapping[str, tuple[str, ...]]
    left_to: Mapping[str, _Left]
    open: Mapping[str, tuple[str, ...]]


_FIELDS: Final = _Fields.load(__name__)


def is_closed(kind: str, path: Path) -> bool:
    """Return whether setting a field that the stack leaves out is drift. path: without items of lists."""
    return any(contains(parse(outer), path) for outer in _FIELDS.closed.get(kind, ()))


def is_open(kind: str, path: Path) -> bool:
    """Return whether others may add items to a list that the stack declares. path: without items of lists."""
    return contains(("metadata",), path) or any(contains(parse(outer), path) for outer in _FIELDS.open.get(kind, ()))


def is_left_to(kind: str, path: Path, manager: str) -> bool:
    """Return whether a field manager may overwrite the declared value. path: with wildcards for items of lists."""
    left = _FIELDS.left_to.get(kind)
    return left is not None and manager == left.manager and contains(parse(left.path), path)


def of_controllers(kind: str) -> tuple[Path, ...]:
    """Return the paths of a kind that controllers write while the platform runs."""
    return tuple(parse(field.path) for field in RUNTIME_FIELDS if field.kind == kind)
