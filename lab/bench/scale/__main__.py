"""Run jobs on a large simulated cluster with the real controllers, and print their cost, row by row.

python -m lab.bench.scale [--nodes 60] [--teams 10] [--jobs 130] [--seed 1] [--plot FILE]

Each row runs the same jobs on the same cluster. Ratios compare with the first row.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from components import names
from emulator.cluster.memory import MIB, free_memory
from emulator.paths import Paths
from emulator.progress import duration
from lab.bench.scale import memory
from lab.bench.scale.load import StalledError, measure
from lab.bench.scale.plan import Job, Scale, waves
from lab.bench.scale.plot import svg
from lab.bench.scale.result import HEADER, Result
from lab.bench.scale.rows import ROWS, TOPOLOGY, Row, member, rows_for, team_name
from lab.scenarios.size import quota, sized
from tests.commands import Parser, ended, whole
from tests.local.environment import Project, local_project

NODES, TEAMS, JOBS = 60, 10, 130
LONG_SECONDS = 15 * 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and draw; return the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        scale = Scale(options.nodes, options.teams, options.jobs)
        scale.check_memory(free_memory() / MIB)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if row.title in options.only] if options.only else rows_for(scale.nodes)
    rows = [TOPOLOGY] if options.topology else rows
    for line in introduction(scale, len(rows)):
        print(line, flush=True)
    results: list[Result] = []

    def tell(result: Result) -> None:
        results.append(result)
        print("\n".join(result.lines(results[0])), flush=True)
        draw(options.plot, scale, results)

    with local_project() as (paths, project):
        placed = {"scheduling": {"packing": "topology"}} if options.topology else {}
        project.configure({**settings(project, scale), **placed})
        began = time.monotonic()
        project.up()
        print(f"platform of {scale.nodes} nodes and {scale.teams} teams: {duration(time.monotonic() - began)}\n")
        print(HEADER, flush=True)
        try:
            return run(paths, rows, waves(scale, options.seed), scale.teams, tell)
        finally:
            print("\n".join(["", *memory.table({result.title: result.memory for result in results})]))
            print(f"\n{options.plot}", flush=True)


def run(
    paths: Paths, rows: Iterable[Row], jobs: Sequence[Sequence[Job]], teams: int, tell: Callable[[Result], None]
) -> int:
    """Measure the rows until one stalls; return the process's exit code."""
    for row in rows:
        try:
            measure(paths, row, jobs, teams, tell)
        except StalledError as error:
            print(f"error: {row.title}: {error}", file=sys.stderr)
            return 1
    return 0


def introduction(scale: Scale, rows: int) -> Iterator[str]:
    """Yield a description of the measurement, and its duration if it is long."""
    yield f"{scale.jobs} jobs of {scale.teams} teams on {scale.nodes} nodes of 8 GPUs, {rows} rows"
    seconds = scale.seconds(rows)
    if seconds > LONG_SECONDS:
        fit = int(scale.jobs * LONG_SECONDS / seconds)
        yield f"note: this takes {duration(seconds)}, more or less; JOBS={fit} takes {duration(LONG_SECONDS)}"


def settings(project: Project, scale: Scale) -> dict[str, Any]:
    """Return the stack's settings: those of Pulumi.dev.yaml at this size; teams share the GPUs evenly."""
    rest = scale.gpus - scale.teams * scale.team_gpus
    each = quota(scale.team_gpus)
    teams = [{"name": team_name(team), "users": [member(team)], "quota": each} for team in range(scale.teams)]
    # Jobs of plain Kueue are in namespaces that do not belong to a team.
    queueing = {"slack": {**quota(rest), names.GPU: rest}, "openToAll": True}
    return sized(project.mirror, scale.nodes, teams, queueing)


def draw(file: Path, scale: Scale, results: Sequence[Result]) -> None:
    """Write the picture of the measured rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    title = f"{scale.jobs} jobs of {scale.teams} teams on {scale.nodes} nodes of 8 GPUs"
    file.write_text(svg(title, results, scale.gpus))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m lab.bench.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=whole("NODES"), default=NODES, help="of eight GPUs each, at most 1000")
    parser.add_argument("--teams", type=whole("TEAMS"), default=TEAMS, help="at most 100")
    parser.add_argument("--jobs", type=whole("JOBS"), default=JOBS, help="at most 10000")
    parser.add_argument("--seed", type=whole("SEED"), default=1, help="decides the jobs' sizes")
    parser.add_argument("--plot", type=Path, default=Path(".local/bench-cluster.svg"), help="where the picture goes")
    parser.add_argument(
        "--only", nargs="+", choices=[row.title for row in ROWS], help="rows; default: all that tell something there"
    )
    parser.add_argument(
        "--topology", action="store_true", help="have Kueue place the jobs, in one row, without the others"
    )
    return parser


if __name__ == "__main__":
    sys.exit(ended(main))
