"""Run the benchmarks on a new local cluster, and print each figure as soon as it is measured."""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from emulator.paths import Paths
from lab.bench import admission, packing, slack, start, teams
from lab.bench.budget import Budget
from tests.local import official
from tests.local.environment import local_environment

BENCHMARKS = ("slack", "start", "teams", "admission", "packing")
SHORT = ("slack", "start", "teams", "admission")
"""The default benchmarks. Each of the others takes longer than all of these."""
MINUTES = 10.0
TEAMS = (10, 100)
REPEATS = 2
JOBS = 100


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    budget = Budget(60 * options.minutes)
    with tempfile.TemporaryDirectory(prefix="mlbatch-bench-") as folder, local_environment() as paths:
        for line in figures(paths, Path(folder), options, budget):
            print(line, flush=True)
    print(budget.report())


def figures(paths: Paths, folder: Path, options: argparse.Namespace, budget: Budget) -> Iterator[str]:
    """Yield the lines of each selected benchmark, after the measured providers."""
    yield from (f"provider {line}" for line in official.providers())
    lines = {
        "slack": lambda: slack.lines(budget),
        "start": lambda: start.lines(paths, folder, options.repeats, budget),
        "teams": lambda: teams.lines(paths, folder, options.teams, options.repeats, budget),
        "admission": lambda: admission.lines(paths, folder, options.jobs, budget),
        "packing": lambda: packing.lines(paths, folder, budget),
    }
    for name in BENCHMARKS:
        if name in options.only:
            yield ""
            yield from lines[name]()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.bench", description=__doc__)
    short = ", ".join(SHORT)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(SHORT), help=f"default: {short}")
    parser.add_argument("--teams", type=int, nargs="+", default=list(TEAMS), help="numbers of teams, against kubectl")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many are to be admitted")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of what is short; the median counts")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no row is begun that would end later")
    return parser


if __name__ == "__main__":
    main()
