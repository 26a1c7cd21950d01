"""The emulated subscription on disk: its resources, operations and faults, in one file.

Each change holds a file lock, so any number of engines and commands can change it at the same time. Resources hold
properties in the form of the SDK's outputs. Azure's internal values, such as the instance ids of a pool, are in
`hidden`.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runner.files import locked, write_private

Properties = dict[str, Any]


@dataclass
class Operation:
    """An asynchronous operation on one resource.

    kind: create, update, delete or register.
    ends: end time in seconds since the epoch; None if it never ends.
    error: code and message if the operation is to fail.
    """

    kind: str
    ends: float | None
    error: tuple[str, str] | None = None

    def over(self, moment: float) -> bool:
        """Tell whether the operation has ended at a time."""
        return self.ends is not None and self.ends <= moment


@dataclass
class Record:
    """One resource. token: its type in the SDK. type: its type in Azure Resource Manager.

    creator: URN of the program's resource that created it, until an engine shows that it has recorded the resource.
    inputs: the inputs of that resource.
    """

    id: str
    token: str
    type: str
    properties: Properties
    hidden: Properties = field(default_factory=dict)
    operation: Operation | None = None
    creator: str = ""
    inputs: Properties = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The last part of the id."""
        return self.id.rpartition("/")[2]


@dataclass
class Fault:
    """A planned failure. on: a pattern (fnmatch) of types, ids and names. kind: see `faults`. times: how often."""

    on: str
    kind: str
    times: int


@dataclass
class State:
    """The whole subscription. Keys of resources are ids in lower case, because Azure's ids ignore case."""

    resources: dict[str, Record] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Failed last operations: id of the resource in lower case -> code and message."""

    def get(self, resource_id: str) -> Record | None:
        """Return a resource, or None."""
        return self.resources.get(resource_id.lower())

    def put(self, record: Record) -> None:
        """Add or replace a resource."""
        self.resources[record.id.lower()] = record

    def remove(self, resource_id: str) -> None:
        """Remove a resource."""
        self.resources.pop(resource_id.lower(), None)

    def of_type(self, kind: str, under: str = "") -> list[Record]:
        """Return the resources of a type, of all or only below an id, in the order of their ids."""
        below = f"{under.lower()}/" if under else ""
        return [found for key, found in sorted(self.resources.items()) if key.startswith(below) and found.type == kind]

    def below(self, resource_id: str) -> list[Record]:
        """Return the resources below an id, the deepest first."""
        prefix = f"{resource_id.lower()}/"
        found = [record for key, record in self.resources.items() if key.startswith(prefix)]
        return sorted(found, key=lambda each: (-each.id.count("/"), each.id.lower()))


_STATE = TypeAdapter(State)


class Store:
    """The file with the state. Only `edit` changes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "subscription.json"
        self._threads = threading.RLock()

    def read(self) -> State:
        """Return the current state. Changes to it are not saved."""
        try:
            return _STATE.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return State()

    @contextlib.contextmanager
    def edit(self) -> Iterator[State]:
        """Hold the state exclusively and save it at the end. An error inside leaves the file unchanged."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._threads, locked(self._folder / "lock"):
            state = self.read()
            yield state
            state.resources = dict(sorted(state.resources.items()))
            # A program's inputs can contain secrets.
            write_private(self._file, _STATE.dump_json(state, indent=1).decode())
