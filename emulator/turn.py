"""One command at a time changes a stack's local environment; another one is told so, and by whom."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from emulator.cluster import lock
from emulator.paths import Paths
from runner.engine import EngineError
from runner.files import private_folder


@contextlib.contextmanager
def alone(paths: Paths, command: str) -> Iterator[None]:
    """Have the turn for the length of the context: from before the cluster's start until the state is written.

    command: as the user has typed it. Raises EngineError where another command has the turn.
    """
    private_folder(paths.run)
    held = lock.take(_file(paths))
    if held is None:
        raise EngineError(
            f"{at_work(paths) or 'another command'} is at work on this stack. Nothing was changed: wait for it, or "
            "stop it, which has it end what it is doing and write its state, and run the command again"
        )
    try:
        os.ftruncate(held, 0)
        os.write(held, f"`{command}`, process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S %Z}".encode())
        yield
    finally:
        os.close(held)


def at_work(paths: Paths) -> str | None:
    """Return which command has the turn, its process and since when, None where none has."""
    if not paths.run.is_dir():
        return None
    free = lock.take(_file(paths))
    if free is None:
        return _file(paths).read_text()
    os.close(free)
    return None


def _file(paths: Paths) -> Path:
    return paths.run / "turn.lock"
