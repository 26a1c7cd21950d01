"""Run the benchmarks on a local cluster of their own, and print their figures."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from emulator import cluster as local_cluster
from emulator import mirror
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import Toolchain
from tests.bench import admission, packing, slack, start, teams
from tests.local.environment import ROOT

BENCHMARKS = ("slack", "start", "teams", "admission", "packing")
TEAMS = (10, 100, 300)
REPEATS = 3
JOBS = 200


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="default: all")
    parser.add_argument("--teams", type=int, nargs="*", default=list(TEAMS), help="numbers of teams, against kubectl")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many are to be admitted")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mlbatch-bench-") as folder:
        paths = Paths.of(root=ROOT, state=Path(folder) / "state")
        toolchain = Toolchain(paths)
        toolchain.install(cluster=True, progress=Progress(len(toolchain.missing(cluster=True))))
        mirror.fill(paths, toolchain)
        local_cluster.start(paths, print)
        try:
            figures = []
            if "slack" in options.only:
                figures.append(slack.run())
            if "start" in options.only:
                figures.append(start.run(paths, Path(folder), options.repeats))
            if "teams" in options.only and options.teams:
                figures.append(teams.run(paths, Path(folder), options.teams, options.repeats))
            if "admission" in options.only:
                figures.append(admission.run(paths, Path(folder), options.jobs))
            if "packing" in options.only:
                figures.append(packing.run(paths, Path(folder)))
        finally:
            local_cluster.stop(paths)
    print("\n\n".join(figures))


if __name__ == "__main__":
    main()
