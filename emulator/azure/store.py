"""The emulated subscription on disk: its resources, operations and faults, in one file.

Every change happens under a lock on the file system, so that any number of engines and commands can work on it at
once. Resources hold properties in the form of the SDK's outputs; what Azure keeps to itself (the instance ids of a
pool, a running operation) is `hidden`.
"""

from __future__ import annotations

import contextlib
import fcntl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runner.files import write_private

Properties = dict[str, Any]


@dataclass
class Operation:
    """An asynchronous operation on one resource.

    kind: create, update, delete or register. ends: when it is over, in seconds since the epoch; None never.
    error: code and message with which it ends, if it is to fail.
    """

    kind: str
    ends: float | None
    error: tuple[str, str] | None = None

    def over(self, moment: float) -> bool:
        """Tell whether the operation is over at a moment."""
        return self.ends is not None and self.ends <= moment


@dataclass
class Record:
    """One resource. token: its type in the SDK; type: in Azure Resource Manager.

    creator: URN of the resource of a program that it was created for, until an engine shows that it knows it; inputs:
    those of that resource.
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
    """A failure to come. on: a pattern (fnmatch) of types, ids and names; kind: see `faults`; times: how often."""

    on: str
    kind: str
    times: int


@dataclass
class State:
    """Everything there is. Resources are keyed by their id in lower case: Azure's ids ignore case."""

    resources: dict[str, Record] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Last operations that have failed: id of the resource, in lower case -> code and message."""

    def get(self, resource_id: str) -> Record | None:
        """Return a resource."""
        return self.resources.get(resource_id.lower())

    def put(self, record: Record) -> None:
        """Add or replace a resource."""
        self.resources[record.id.lower()] = record

    def remove(self, resource_id: str) -> None:
        """Take a resource away."""
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
    """The state's file. `edit` is the only way to change it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "subscription.json"
        self._threads = threading.RLock()

    def read(self) -> State:
        """Return the state as it is now; changes to it are not kept."""
        try:
            return _STATE.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return State()

    @contextlib.contextmanager
    def edit(self) -> Iterator[State]:
        """Hold the state exclusively and write it back at the end; an error inside leaves the file as it was."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._threads, open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.read()
            yield state
            state.resources = dict(sorted(state.resources.items()))
            # The inputs of a program may hold secrets.
            write_private(self._file, _STATE.dump_json(state, indent=1).decode())
