"""Finding and ending the processes of one cluster, whoever started them and whatever became of their parents.

Every process carries the state folder in its environment (`layout.MARKER`), so nothing depends on files of process ids.
"""

from __future__ import annotations

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
    """Return a `preexec_fn` that has the kernel kill the child when the calling thread ends, however that happens.

    Call both this function and Popen from the thread that lives longest: the signal follows the thread, prctl(2).
    """
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def request() -> None:
        if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(127)

    return request


def find(layout: Layout) -> dict[int, str]:
    """Return the live processes of the cluster: process id -> command line. The calling process is left out."""
    entry = f"{MARKER}={layout.paths.state}".encode()
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # proc(5): the state follows the command name, which is in parentheses and may hold any character.
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if entry in (folder / "environ").read_bytes().split(b"\0") and state != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(folder.name)] = command
    found.pop(os.getpid(), None)
    return found


def kill_all(layout: Layout, seconds: float = 10.0) -> dict[int, str]:
    """Kill every process of the cluster and wait until they are gone; return those that are still there after that."""
    deadline = time.monotonic() + seconds
    while (left := find(layout)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    return left
