"""Lets one command at a time change a stack's local environment; others get an error that names it."""

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
    """Hold the turn for the length of the context.

    command: in the user's words. Raises EngineError if another command holds the turn.
    """
    private_folder(paths.run)
    held = lock.take(_file(paths))
    if held is None:
        raise EngineError(
            f"{at_work(paths) or 'another command'} is changing this stack. No change was made. Wait for it, or "
            "stop it: it then finishes its current operations and writes its state. Then run the command again"
        )
    try:
        os.ftruncate(held, 0)
        os.write(held, f"`{command}`, process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S %Z}".encode())
        yield
    finally:
        os.close(held)


def at_work(paths: Paths) -> str | None:
    """Return the command that holds the turn, with its process and start time, or None."""
    if not paths.run.is_dir():
        return None
    free = lock.take(_file(paths))
    if free is None:
        return _file(paths).read_text()
    os.close(free)
    return None


def _file(paths: Paths) -> Path:
    return paths.run / "turn.lock"
