"""A local environment for one review: an empty cluster with the emulated providers."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from runner.environment import Environment


class NoEnvironmentError(Exception):
    """The local environment did not start. Its own output above gives the reason."""


@contextlib.contextmanager
def local_environment(root: Path, stack: str) -> Iterator[Environment]:
    """Yield the engine's environment for a new local cluster of a stack. Deletes the cluster at the end of the context.

    Raises NoEnvironmentError if it does not start.
    """
    command = [sys.executable, "-m", "emulator", "lend", "--stack", stack]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = next(iter(process.stdout or ()), "")
            if not line:
                raise NoEnvironmentError("the local environment did not start; see the output above")
            yield Environment.load(line)
        finally:
            # It stops when its input ends, also if this process is killed.
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
