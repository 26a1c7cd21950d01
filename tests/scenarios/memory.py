"""Whether this machine can hold a simulated cluster: what nodes and jobs take, measured, against what is free."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
BASE: Final = 2200 * MIB
NODE: Final = 3 * MIB
JOB: Final = 2 * MIB
"""Bytes of all processes of the local cluster together: of an empty one, of each simulated node, of each job that is
there at a time. `python -m tests.scenarios.memory` measures them; docs/gameday.md has the figures."""


class TooLargeError(ValueError):
    """A simulated cluster does not fit this machine's memory; the message says what does."""


def needed(nodes: int, jobs: int) -> int:
    """Return how many bytes a simulated cluster takes."""
    return BASE + nodes * NODE + jobs * JOB


def check(*, nodes: int, jobs: int, available: int | None = None) -> None:
    """Hold a simulated cluster to the memory that is free, this machine's unless it is given, in bytes.

    Raises TooLargeError for one that does not fit.
    """
    free = available if available is not None else free_memory()
    if needed(nodes, jobs) <= free:
        return
    said = f"{nodes} nodes and {jobs} jobs take {_gib(needed(nodes, jobs))} of memory, and {_gib(free)} are free here"
    if free < needed(1, 1):
        raise TooLargeError(f"{said}; a cluster of any size takes {_gib(needed(1, 1))}: end something else")
    fits = []
    if (fewer := (free - needed(0, jobs)) // NODE) >= 1:
        fits.append(f"{fewer} nodes with as many jobs")
    if (fewer := (free - needed(nodes, 0)) // JOB) >= 1:
        fits.append(f"{fewer} jobs on as many nodes")
    if not fits:
        part = (free - BASE) / (needed(nodes, jobs) - BASE)
        fits.append(f"{max(1, int(nodes * part))} nodes with {int(jobs * part)} jobs")
    raise TooLargeError(f"{said}; what fits: {', or '.join(fits)}")


def free_memory() -> int:
    """Return the bytes that this machine can give to new processes (proc(5), MemAvailable)."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
