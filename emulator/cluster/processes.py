"""Finds and ends the processes of one cluster, independent of their parents.

Each process has the state folder in its environment (`layout.MARKER`), so no files with process ids are needed.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from emulator.cluster.layout import MARKER, Layout

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def die_with_parent() -> Callable[[], None]:
    """Return a `preexec_fn` that makes the kernel kill the child when the calling thread ends.

    Call this function and Popen from the thread that lives longest, because the signal follows the thread, prctl(2).
    """
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def request() -> None:
        if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(127)

    return request


def find(layout: Layout) -> dict[int, str]:
    """Return the running processes of the cluster without the caller: process id -> command line."""
    entry = f"{MARKER}={layout.paths.state}".encode()
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # proc(5): the state follows the command name, which is in parentheses and can contain any character.
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if entry in (folder / "environ").read_bytes().split(b"\0") and state != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(folder.name)] = command
    found.pop(os.getpid(), None)
    return found


def kill_all(layout: Layout, seconds: float = 10.0) -> dict[int, str]:
    """Kill all processes of the cluster, wait for their end, and return those that still run."""
    deadline = time.monotonic() + seconds
    while (left := find(layout)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    return left
