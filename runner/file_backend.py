"""The files in which the engine's file backend keeps a stack, after the engine was killed or the disk was full.

The backend (pulumi/pkg/v3/backend/diy) writes a file beside its place and renames it, even where the disk was full and
half of it is missing: of the state, which then does not parse, or of a lock, which then names nobody.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

KEPT: Final = 3
"""How many updates' copies of the state are kept. The backend itself keeps every one."""

_CLOCK_STEP: Final = 10.0
"""Seconds by which the clock may have been put right between the start of a process and its lock."""


class LockedError(Exception):
    """A live engine holds the stack's lock, or may hold it; the message says which."""


class FileBackend:
    """One stack in the folder of a file backend."""

    def __init__(self, folder: Path, project: str, stack: str) -> None:
        self._folder, self._stack = folder, stack
        self._files = folder / ".pulumi"
        self._locks = self._files / "locks" / "organization" / project / stack
        self._history = self._files / "history" / project / stack
        self.state = self._files / "stacks" / project / f"{stack}.json"

    @property
    def is_torn(self) -> bool:
        """Whether there is a state that is not whole."""
        return self.state.exists() and _checkpoint(self.state) is None

    def held(self) -> str | None:
        """Return who holds a lock since when, being alive or of another host; None where nobody does."""
        return next((_told(holder) for _, holder in self._holders() if holder and _may_live(holder)), None)

    def unlock(self) -> tuple[Path, ...]:
        """Remove the locks of dead engines; return those among them that name nobody.

        Raises LockedError where the engine that holds one is alive or of another host, or where one names nobody
        while an engine works on this backend.
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
                raise LockedError(f"by an engine whose lock {torn[0]} is not whole, perhaps process {engine}")
        for file in torn:
            file.unlink(missing_ok=True)
        return tuple(torn)

    def prune(self) -> None:
        """Remove the history's copies of the state that are older than the last few."""
        updates = sorted(self._history.glob(f"{self._stack}-*.history.json"), reverse=True)
        for file in updates[KEPT:]:
            _remove(file.with_name(file.name.replace(".history.", ".checkpoint.")))
            _remove(file)

    def _holders(self) -> list[tuple[Path, dict[str, Any] | None]]:
        files = sorted(each for pattern in ("*.json", "*.tmp") for each in self._locks.glob(pattern))
        return [(file, _holder(file)) for file in files]

    def _engines(self) -> Iterator[int]:
        """Return the processes of this user that are engines on this backend."""
        variable = f"PULUMI_BACKEND_URL=file://{self._folder}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_engine = (process / "comm").read_text().strip() == "pulumi"
                if is_engine and variable in (process / "environ").read_bytes().split(b"\0"):
                    yield int(process.name)
            except OSError:
                continue


def _checkpoint(file: Path) -> dict[str, Any] | None:
    """Return the checkpoint that a file of the state holds, None where it is not whole."""
    try:
        found = json.loads(file.read_text())["checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _holder(file: Path) -> dict[str, Any] | None:
    """Return who holds a lock (lockContent in diy/lock.go), None where the file does not say."""
    try:
        lock = json.loads(file.read_text())
        timestamp = datetime.fromisoformat(lock["timestamp"])
        return {
            "pid": int(lock["pid"]),
            "username": lock["username"],
            "hostname": lock["hostname"],
            "timestamp": timestamp,
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _told(holder: dict[str, Any]) -> str:
    since = holder["timestamp"].astimezone(UTC)
    return f"process {holder['pid']} of {holder['username']} on {holder['hostname']} since {since:%Y-%m-%d %H:%M:%S %Z}"


def _may_live(holder: dict[str, Any]) -> bool:
    return holder["hostname"] != socket.gethostname() or _alive(holder["pid"], holder["timestamp"])


def _alive(pid: int, locked: datetime) -> bool:
    """Return whether the process that locked at a time runs: one that began later has its number after a reboot."""
    try:
        # proc(5): after the name, which may hold anything, come the fields from the third on; starttime is the 22nd.
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
