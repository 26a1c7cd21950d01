"""A local environment for the length of a review: a cluster that holds nothing, with the emulated providers."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from runner.environment import Environment


class NoEnvironmentError(Exception):
    """The local environment did not start; the message says so, and what it said stands above it."""


@contextlib.contextmanager
def local_environment(root: Path, stack: str) -> Iterator[Environment]:
    """Yield what an engine needs of a fresh local cluster of a stack; the cluster goes with the context.

    Raises NoEnvironmentError where it does not start.
    """
    command = [sys.executable, "-m", "emulator", "lend", "--stack", stack]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = next(iter(process.stdout or ()), "")
            if not line:
                raise NoEnvironmentError("the local environment did not start; why stands above")
            yield Environment.load(line)
        finally:
            # It stops when its input ends, even if this process is killed.
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
