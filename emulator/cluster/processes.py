"""Finding and ending the processes of one cluster, whoever started them and whatever became of their parents.

Every process carries the state folder in its environment (`layout.MARKER`), so nothing depends on files of process ids.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
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
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            if entry in variables and _state(folder) != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(folder.name)] = command
        except OSError:
            continue
    return found


def kill_all(layout: Layout, timeout: float = 10.0) -> dict[int, str]:
    """Kill every process of the cluster and wait until they are gone; return those that are still there after that."""
    deadline = time.monotonic() + timeout
    while True:
        left = find(layout)
        if not left or time.monotonic() > deadline:
            return left
        for process in left:
            send(layout, process, signal.SIGKILL)
        time.sleep(0.05)


def send(layout: Layout, process: int, number: signal.Signals) -> None:
    """Send a signal to a process of the cluster; one that has ended, or whose id was given away, gets none."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process)
        try:
            # Looked at again through the open handle: the id cannot change hands any more.
            environ = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
            if f"{MARKER}={layout.paths.state}".encode() in environ:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def wait_gone(process: int, timeout: float) -> bool:
    """Wait until a process has ended; tell whether it has."""
    try:
        handle = os.pidfd_open(process)
    except OSError:
        return True
    try:
        return bool(select.select([handle], [], [], timeout)[0])
    finally:
        os.close(handle)


def _state(folder: Path) -> str:
    # proc(5): the state follows the command name, which is in parentheses and may hold any character.
    return (folder / "stat").read_text().rpartition(")")[2].split()[0]
