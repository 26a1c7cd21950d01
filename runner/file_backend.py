"""A stack's files in the engine's file backend, after the engine was killed or the disk was full.

The backend (pulumi/pkg/v3/backend/diy) writes a temporary file and renames it, also if a full disk truncated it. A
truncated state cannot be parsed. A truncated lock does not name its engine.
"""

import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

KEPT: Final = 3
"""Number of updates whose copies of the state are kept. The backend itself keeps all."""

_CLOCK_STEP: Final = 10.0
"""Seconds that the clock may have been corrected between the start of a process and its lock."""


class LockedError(Exception):
    """A running engine holds or may hold the stack's lock. The message names the engine."""


class _Holder(BaseModel):
    pid: int
    username: str
    hostname: str
    timestamp: datetime


class FileBackend:
    """One stack in the folder of a file backend."""

    def __init__(self, folder: Path, project: str, stack: str) -> None:
        self._folder, self._stack = folder, stack
        self._files = folder / ".pulumi"
        self._locks = self._files / "locks" / "organization" / project / stack
        self._history = self._files / "history" / project / stack
        self.state = self._files / "stacks" / project / f"{stack}.json"

    @staticmethod
    def url(folder: Path) -> str:
        """Return the URL of a backend in a folder.

        The backend writes a file's metadata (`.attrs`) without a rename: if it is killed then, it cannot read the state
        any more (gocloud.dev/blob/fileblob/attrs.go). It does not need the metadata.
        """
        return f"file://{folder}?metadata=skip"

    @property
    def is_torn(self) -> bool:
        """Return whether a state file exists and is incomplete."""
        return self.state.exists() and _checkpoint(self.state) is None

    @property
    def has_resources(self) -> bool:
        """Return whether the state has resources."""
        return bool(((_checkpoint(self.state) or {}).get("latest") or {}).get("resources"))

    def held(self) -> str | None:
        """Return the engine that holds a lock and its start, if it is alive or on another host. None otherwise."""
        return next((_told(holder) for _, holder in self._holders() if holder and _may_live(holder)), None)

    def unlock(self) -> tuple[Path, ...]:
        """Remove the locks of dead engines. Return those that did not name an engine.

        Raises LockedError if a lock's engine is alive or on another host, or if a lock names no engine while an engine
        works on this backend.
        """
        torn = []
        for file, holder in self._holders():
            if holder is None:
                torn.append(file)
            elif _may_live(holder):
                raise LockedError(f"by {_told(holder)}")
            else:
                file.unlink(missing_ok=True)
        if torn:
            for engine in self._engines():
                raise LockedError(f"by an engine whose lock {torn[0]} is incomplete, perhaps process {engine}")
        for file in torn:
            file.unlink(missing_ok=True)
        return tuple(torn)

    def prune(self) -> None:
        """Remove the history's older copies of the state."""
        updates = sorted(self._history.glob(f"{self._stack}-*.history.json"), reverse=True)
        for file in updates[KEPT:]:
            _remove(file.with_name(file.name.replace(".history.", ".checkpoint.")))
            _remove(file)

    def _holders(self) -> list[tuple[Path, _Holder | None]]:
        files = sorted(each for pattern in ("*.json", "*.tmp") for each in self._locks.glob(pattern))
        return [(file, _holder(file)) for file in files]

    def _engines(self) -> Iterator[int]:
        """Yield the ids of this user's engine processes on this backend."""
        variable = f"PULUMI_BACKEND_URL={self.url(self._folder)}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_engine = (process / "comm").read_text().strip() == "pulumi"
                if is_engine and variable in (process / "environ").read_bytes().split(b"\0"):
                    yield int(process.name)
            except OSError:
                continue


def _checkpoint(file: Path) -> dict[str, Any] | None:
    """Return the checkpoint in a state file, None if it is incomplete."""
    try:
        found = json.loads(file.read_text())["checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _holder(file: Path) -> _Holder | None:
    """Return the holder of a lock (lockContent in diy/lock.go), None if the file is incomplete."""
    try:
        return _Holder.model_validate_json(file.read_text())
    except (OSError, ValueError):
        return None


def _told(holder: _Holder) -> str:
    since = holder.timestamp.astimezone(UTC)
    return f"process {holder.pid} of {holder.username} on {holder.hostname} since {since:%Y-%m-%d %H:%M:%S %Z}"


def _may_live(holder: _Holder) -> bool:
    return holder.hostname != socket.gethostname() or _alive(holder.pid, holder.timestamp)


def _alive(pid: int, locked: datetime) -> bool:
    """Return whether the process of a lock still runs. A later process can have the same number after a reboot."""
    try:
        # proc(5): the name can contain any character. The fields after it begin with the third. starttime is the 22nd.
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return False
    lines = Path("/proc/stat").read_text().splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    began = booted + ticks / os.sysconf("SC_CLK_TCK")
    return began <= locked.timestamp() + _CLOCK_STEP


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.with_name(f"{file.name}.attrs").unlink(missing_ok=True)
