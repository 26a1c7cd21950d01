"""Largest memory of each controller in a time span, as the kernel counts it."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from emulator.cluster import processes
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from lab.periodic import every
from lab.scenarios.memory import parents

CONTROL_PLANE: Final = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok")
_SANDBOX: Final = "emulator/cluster/sandbox.py"
SECONDS: Final = 2.0


@contextlib.contextmanager
def watched(paths: Paths) -> Iterator[Counter[str]]:
    """Yield the largest resident memory of each program during the context: MiB by the program's title."""
    found: Counter[str] = Counter()
    known = programs(paths)

    def look() -> None:
        now: Counter[str] = Counter()
        for process, title in known.items():
            now[title] += resident_mib(process)
        for title, mib in now.items():
            found[title] = max(found[title], mib)

    with every(SECONDS, look):
        yield found
    look()


def programs(paths: Paths) -> dict[int, str]:
    """Return the processes of a local cluster's control plane and controllers, with their names."""
    commands = processes.find(Layout(paths))
    found = {process: _base(command) for process, command in commands.items() if _base(command) in CONTROL_PLANE}
    sandboxes = {
        process: _deployment(command.split(_SANDBOX)[1].split()[1])
        for process, command in commands.items()
        if _SANDBOX in command and "unshare" not in command
    }
    for process, parent in parents().items():
        if parent in sandboxes:
            found[process] = sandboxes[parent]
    return found


def resident_mib(process: int) -> int:
    """Return a process's memory in RAM (proc(5), VmRSS), 0 if it has ended."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) // 1024
    return 0


def line(peaks: Mapping[str, int]) -> str:
    """Return the largest memory of each program, in descending order."""
    ordered = sorted(peaks.items(), key=lambda item: -item[1])
    return "MiB at most: " + ", ".join(f"{title} {mib}" for title, mib in ordered)


def table(peaks: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a table with a line for each controller and a column for each measured row."""
    names = sorted(
        {name for row in peaks.values() for name in row},
        key=lambda name: -max(row.get(name, 0) for row in peaks.values()),
    )
    width = max(map(len, peaks), default=0)
    header = f"{'MiB at most':28}" + "".join(f"  {title:>{width}}" for title in peaks)
    return [
        header,
        *(f"{name:28}" + "".join(f"  {row.get(name, 0):{width}}" for row in peaks.values()) for name in names),
    ]


def _base(command: str) -> str:
    return command.partition(" ")[0].rpartition("/")[2]


def _deployment(pod: str) -> str:
    """Return the name of a pod's Deployment, the prefix of the pod's name."""
    return pod.rsplit("-", 2)[0]
