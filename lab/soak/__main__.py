"""Run jobs on a local cluster whose nodes and controllers keep failing, and check the platform's promises.

Fails if a job is lost or fails, or if a team has less than its quota for longer than the bound in docs/recovery.md. A
seed decides when events happen.
"""

import sys
from collections import Counter
from collections.abc import Sequence

from components.tenancy.bounds import MOST_JOBS
from components.workloads.synthetic import SyntheticJob
from lab.gameday.report import text
from lab.gameday.run import Day
from lab.gameday.size import Size, settings
from lab.soak.trace import NODES, QUOTAS, trace
from tests.commands import Parser, whole
from tests.local.environment import gang, local_project


def most_jobs(jobs: Sequence[SyntheticJob]) -> int:
    """Return how many of the first jobs fit into their teams' namespaces. A shorter run has the same first jobs."""
    held: Counter[str] = Counter()
    for fitting, job in enumerate(jobs):
        held[job.team] += 1
        if held[job.team] > MOST_JOBS:
            return fitting
    return len(jobs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print and judge."""
    parser = Parser(prog="python -m lab.soak", description=__doc__)
    parser.add_argument("--seed", type=whole("SEED"), default=1)
    parser.add_argument("--jobs", type=whole("JOBS", 1, MOST_JOBS * len(QUOTAS)), default=100)
    options = parser.parse_args(arguments)
    jobs, events = trace(options.seed, options.jobs)
    ((team, most),) = Counter(job.team for job in jobs).most_common(1)
    if most > MOST_JOBS:
        sys.exit(
            f"error: JOBS={options.jobs} are {most} of team {team}, and its namespace holds {MOST_JOBS}: give "
            f"{most_jobs(jobs)} or fewer"
        )
    title = f"seed {options.seed}: {len(jobs)} jobs in {jobs[-1].arrival:.0f} s, {len(events)} faults"
    print(title, flush=True)
    with local_project() as (paths, project):
        size = Size(NODES)
        project.configure(settings(project, size))
        project.up()
        wrapped = [(job, gang(job.name, job.team, job.pods, job.gpus, job.seconds)) for job in jobs]
        run = Day(paths, size, wrapped, events)
        run.go()
    report = run.report(title, time_scale=1)
    print(text(report))
    if report.broken or not report.is_whole:
        sys.exit("\n".join(report.broken) or "interrupted")


if __name__ == "__main__":
    main()
