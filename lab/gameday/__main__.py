"""Simulate a day of a busy cluster in minutes, on a new local cluster, and report the results.

Fails with each broken promise: a job was lost, which did not end as in its trace, or a team had less than its quota for
longer than the bound in docs/recovery.md. A seed decides the faults, and the trace if no file is given.
"""

import argparse
import contextlib
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from components.tenancy.bounds import MOST_JOBS
from components.workloads.synthetic import SyntheticJob
from emulator.paths import Paths
from lab.gameday.recorded import HOUR, day
from lab.gameday.report import Report, html, text
from lab.gameday.run import WISHES, Day
from lab.gameday.size import Size, settings
from lab.scenarios.memory import check as check_memory
from lab.soak.trace import OF_CONTROLLERS, Fault, Weather, faults
from stacks.config import trace
from stacks.config.errors import SettingsError
from stacks.config.inputs import interpret
from stacks.job_manifests import wanted_load
from stacks.layers.jobs import load
from tests.commands import Parser, ended, number, whole
from tests.local.environment import local_project

HOURS, MOST_HOURS = 24, 7 * 24
KINDS = (Fault.SICK, Fault.SICK, Fault.CORDONED, *OF_CONTROLLERS, Fault.API_SERVER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print, write the page; return the process's exit code."""
    parser = Parser(prog="python -m lab.gameday", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=whole("SEED"), default=1)
    parser.add_argument("--trace", type=Path, help="file with the jobs (docs/workloads/synthetic.md); default: made up")
    parser.add_argument("--nodes", type=whole("NODES"), default=6, help="of eight GPUs each")
    parser.add_argument(
        "--hours", type=number("HOURS"), help=f"of a generated day until the last job arrives; default: {HOURS}"
    )
    parser.add_argument("--time-scale", type=number("TIME_SCALE"), default=120, help="seconds of the day in one")
    parser.add_argument("--html", type=Path, default=Path(".local/gameday.html"), help="where the page goes")
    parser.add_argument("--print-trace", action="store_true", help="print only the jobs, as a trace")
    options = parser.parse_args(arguments)
    try:
        size = Size(options.nodes)
        check_memory(nodes=size.nodes, jobs=0)
        lines = _lines(options, size)
        check_memory(nodes=size.nodes, jobs=len(lines))
        if not options.print_trace:
            _make_room(options.html)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.print_trace:
        print(trace.write(lines, [_described(options, size)]), end="")
        return 0
    try:
        report, began = play(lines, size, options.seed, options.time_scale)
    except SettingsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\n{text(report)}\n\n{options.html}", flush=True)
    options.html.write_text(html(report, began), encoding="utf-8")
    for promise in report.broken:
        print(f"error: broken: {promise}", file=sys.stderr)
    return 1 if report.broken or not report.is_whole else 0


def _make_room(page: Path) -> None:
    """Check that the page can be written before the simulation takes hours. Raises OSError."""
    page.parent.mkdir(parents=True, exist_ok=True)
    with page.open("a"):
        pass


def _lines(options: argparse.Namespace, size: Size) -> list[trace.TraceLine]:
    """Return the day's jobs. Raises ValueError for invalid options."""
    if not 1 <= options.time_scale <= 100_000:
        raise ValueError(f"a time scale of {options.time_scale:g} is invalid; write a number from 1 to 100000")
    if options.trace is not None:
        if options.hours is not None:
            raise ValueError(f"{options.trace} sets the hours, so {options.hours:g} cannot apply; leave one out")
        return trace.read(options.trace, size.room)
    hours = HOURS if options.hours is None else options.hours
    if not hours <= MOST_HOURS:
        raise ValueError(f"{hours:g} hours are no day; write a number up to {MOST_HOURS}")
    found = day(options.seed, size.quotas, size.gpus, hours)
    if not found:
        raise ValueError(f"no job arrives within {hours:g} hours; write more")
    ((team, most),) = Counter(line.team for line in found).most_common(1)
    if most > MOST_JOBS:
        raise ValueError(
            f"{hours:g} hours on {size.nodes} nodes have {most} jobs of team {team}, and its namespace holds "
            f"{MOST_JOBS}; write fewer hours, or fewer nodes"
        )
    return trace.parse(trace.write(found), f"the day of seed {options.seed}", size.room)


def _described(options: argparse.Namespace, size: Size) -> str:
    """Return a description of the jobs' source."""
    if options.trace is not None:
        return str(options.trace)
    return f"seed {options.seed}, {size.nodes} nodes, {HOURS if options.hours is None else options.hours:g} hours"


def play(lines: Sequence[trace.TraceLine], size: Size, seed: int, time_scale: float) -> tuple[Report, datetime]:
    """Simulate a day on a new cluster; return the report and the start time."""
    with prepared(lines, size, seed, time_scale) as (_, today):
        began = datetime.now().astimezone()
        today.go()
    title = (
        f"Game day, seed {seed}: {lines[-1].arrival / HOUR:.0f} hours of arrivals, {time_scale:g} times as fast, on "
        f"{size.nodes} nodes with {size.gpus} GPUs, in {today.seconds / 60:.0f} minutes"
        f"{'' if today.is_whole else ', interrupted'}"
    )
    return today.report(title, time_scale), began


@contextlib.contextmanager
def prepared(
    lines: Sequence[trace.TraceLine], size: Size, seed: int, time_scale: float, kinds: Sequence[Fault] = KINDS
) -> Iterator[tuple[Paths, Day]]:
    """Install the platform on a new cluster; yield its paths, and the day, which can start. kinds: of faults."""
    end = lines[-1].arrival / time_scale
    weather = Weather(kinds=tuple(kinds), nodes=size.nodes, most_lost=2 if size.nodes > 4 else 1)
    events = faults(random.Random(seed), end, weather)  # noqa: S311 - a day, no secret
    with local_project() as (paths, project):
        file = project.folder / "day.csv"
        file.write_text(trace.write(lines))
        wanted = settings(project, size, {"trace": str(file), "timeScale": time_scale})
        project.configure(wanted)
        project.up()
        jobs = submissions(wanted, project.folder, {"KUBECONFIG": str(paths.kubeconfig)})
        yield paths, Day(paths, size, jobs, events)


def submissions(
    wanted: Mapping[str, Any], base: Path, environment: Mapping[str, str]
) -> list[tuple[SyntheticJob, dict[str, Any]]]:
    """Return each job of the load with the AppWrapper that `mlbatch jobs synthetic` prints for it, hurried a bit.

    Raises SettingsError for a trace that does not fit the cluster.
    """
    inputs = interpret(wanted_load(wanted, {}), base=base, environment=environment)
    made = [dict(document) for document in load(inputs)]
    for document in made:
        metadata = document["metadata"]
        document["metadata"] = {**metadata, "annotations": {**metadata["annotations"], **WISHES}}
    return list(zip(inputs.load, made, strict=True))


if __name__ == "__main__":
    sys.exit(ended(main))
