"""Estimated memory of a local cluster, rounded up, and free memory of this machine."""

from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
BASE: Final = 2200 * MIB
NODE: Final = 3 * MIB
JOB: Final = 2 * MIB
"""Bytes of all processes of an empty local cluster, for each simulated node, and for each job that exists at a time.

Largest measurements: 1.5 GiB for six nodes in a game day of 99 jobs, and for twenty nodes in the large benchmark with
60 jobs; 4.2 GiB for 1,000 nodes and 100 teams with 2,195 jobs on all GPUs, where the estimate is 9.4. The engine and
its program add half a GiB. `python -m lab.scenarios.memory` measures all three.
"""

POD: Final = MIB // 4
"""Bytes of each other pod, such as agents on every node, and of each finished job. Controllers only cache them."""


def needed(nodes: int, jobs: int, pods: int = 0) -> int:
    """Return the bytes that a simulated cluster needs. pods: other pods, and finished jobs."""
    return BASE + nodes * NODE + jobs * JOB + pods * POD


def free_memory(file: Path = Path("/proc/meminfo")) -> int:
    """Return the bytes that new processes of this machine can use (proc(5), MemAvailable)."""
    lines = dict(line.split(":") for line in file.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def gib(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / (1 << 30):.1f} GiB"
