"""What a local cluster takes of this machine's memory, and what is free: an estimate on the safe side."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
BASE: Final = 2200 * MIB
NODE: Final = 3 * MIB
JOB: Final = 2 * MIB
"""Bytes of all processes of the local cluster together: of an empty one, of each simulated node, of each job that is
there at a time. Seen at most: 1.5 GiB of six nodes in a game day of 99 jobs, and of twenty under the large benchmark
with 60 jobs; 4.2 GiB of 1,000 nodes and 100 teams with 2,195 jobs on all of their GPUs, where the estimate is 9.4. The
engine and its program add half a GiB. `python -m tests.scenarios.memory` measures all three."""

POD: Final = MIB // 4
"""Bytes of each pod that no such job has made, such as those that agents run on every node, and of what is left of a
job that is over: they are read and kept, and nobody does anything about them."""


def needed(nodes: int, jobs: int, pods: int = 0) -> int:
    """Return how many bytes a simulated cluster takes. pods: further ones, and jobs that are over."""
    return BASE + nodes * NODE + jobs * JOB + pods * POD


def free_memory(file: Path = Path("/proc/meminfo")) -> int:
    """Return the bytes that this machine can give to new processes (proc(5), MemAvailable)."""
    lines = dict(line.split(":") for line in file.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def gib(size: int) -> str:
    """Return an amount of bytes as people read it."""
    return f"{size / (1 << 30):.1f} GiB"
