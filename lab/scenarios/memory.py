"""Checks whether this machine's free memory fits a simulated cluster with its nodes and jobs.

python -m lab.scenarios.memory [--nodes 100] [--jobs 200]     measures it
"""

import contextlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from components.tenancy.bounds import MOST_JOBS
from emulator.cluster import processes
from emulator.cluster.layout import Layout
from emulator.cluster.memory import BASE, JOB, MIB, NODE, free_memory, gib, needed
from emulator.paths import Paths
from lab.scenarios.size import FEWEST, TEAMS, Size, settings
from stacks.settings.limits import MOST_NODES
from tests.commands import Parser, whole
from tests.local.environment import Cluster, eventually, gang, local_project


class TooLargeError(ValueError):
    """A simulated cluster does not fit this machine's memory; the message says which size does."""


def check(*, nodes: int, jobs: int, available: int | None = None) -> None:
    """Compare the memory of a simulated cluster with the free memory in bytes, by default this machine's.

    Raises TooLargeError if it does not fit.
    """
    free = available if available is not None else free_memory()
    if needed(nodes, jobs) <= free:
        return
    said = f"{nodes} nodes and {jobs} jobs take {gib(needed(nodes, jobs))} of memory, and {gib(free)} are free here"
    if free < needed(1, 1):
        raise TooLargeError(f"{said}; a cluster of any size takes {gib(needed(1, 1))}: end something else")
    fits = []
    if (fewer := (free - needed(0, jobs)) // NODE) >= 1:
        fits.append(f"{fewer} nodes with as many jobs")
    if (fewer := (free - needed(nodes, 0)) // JOB) >= 1:
        fits.append(f"{fewer} jobs on as many nodes")
    if not fits:
        part = (free - BASE) / (needed(nodes, jobs) - BASE)
        fits.append(f"{max(1, int(nodes * part))} nodes with {int(jobs * part)} jobs")
    raise TooLargeError(f"{said}; what fits: {', or '.join(fits)}")


def taken(paths: Paths) -> int:
    """Return the bytes of all processes of a local cluster, with shared memory counted once (proc(5), Pss)."""
    total = 0
    for process in with_descendants(processes.find(Layout(paths))):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def parents() -> dict[int, int]:
    """Return the parent of each process."""
    found: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # proc(5): state and parent follow the command name, which is in parentheses and can contain any character.
            found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def with_descendants(found: Iterable[int]) -> set[int]:
    """Return processes with all their descendants, because processes in containers have another environment."""
    every, there = set(found), parents()
    while more := {process for process, parent in there.items() if parent in every} - every:
        every |= more
    return every


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure an empty cluster, one with more nodes, and one with jobs; print the memory of each node and job."""
    parser = Parser(prog="python -m lab.scenarios.memory")
    parser.add_argument("--nodes", type=whole("--nodes", FEWEST + 1, MOST_NODES), default=100)
    parser.add_argument("--jobs", type=whole("--jobs", 1, MOST_JOBS), default=200, help="of one GPU, and of one team")
    options = parser.parse_args(arguments)
    with local_project() as (paths, project):
        measured = []
        for nodes in (FEWEST, options.nodes):
            project.configure(settings(project, Size(nodes)))
            project.up()
            measured.append(taken(paths))
            print(f"{nodes} nodes: {measured[-1] / MIB:.0f} MiB", flush=True)
        cluster, team = Cluster(paths.kubeconfig), next(iter(TEAMS))
        for number in range(options.jobs):
            cluster.create(gang(f"job-{number}", team, 1, 1))
        eventually(
            "all jobs run",
            lambda: sum(pod["status"].get("phase") == "Running" for pod in cluster.list("v1", "Pod", team)),
            lambda running: running == options.jobs,
            seconds=600,
        )
        measured.append(taken(paths))
    few, many, busy = measured
    node, job = (many - few) / (options.nodes - FEWEST), (busy - many) / options.jobs
    print(f"{options.nodes} nodes, {options.jobs} jobs: {busy / MIB:.0f} MiB")
    print(f"empty {(few - FEWEST * node) / MIB:.0f} MiB, a node {node / MIB:.2f} MiB, a job {job / MIB:.2f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
