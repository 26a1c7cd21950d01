"""Measure the cost of a question on a cluster of a given size: read it, create its replica, ask a running replica.

python -m lab.soak.answers.cost [--nodes 200] [--jobs 300] [--questions 5]
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from ask import source
from ask.asking import ask
from ask.manifest import read
from ask.replica import Replica
from components.tenancy.bounds import MOST_JOBS
from emulator import cluster as local_cluster
from emulator.cluster.memory import MIB
from emulator.paths import Paths
from lab.scenarios.memory import taken
from lab.scenarios.size import FEWEST, TEAMS, Size, settings
from stacks.settings.limits import MOST_NODES
from tests.commands import Parser, whole
from tests.local.environment import ROOT, Cluster, eventually, gang, local_project
from tests.local.jobs import KUEUE


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a cluster, ask, and print each measurement at once; return the process's exit code."""
    parser = Parser(prog="python -m lab.soak.answers.cost", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=whole("--nodes", FEWEST, MOST_NODES), default=200)
    parser.add_argument(
        "--jobs",
        type=whole("--jobs", 0, MOST_JOBS * len(TEAMS)),
        default=300,
        help="of one pod with four GPUs: what has no room waits",
    )
    parser.add_argument("--questions", type=whole("--questions", 1, 1000), default=5)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mlbatch-cost-") as folder:
        found = filled(Size(options.nodes), options.jobs)
        asked = [("blue", 1), ("red", 2), ("blue", options.nodes // 2), ("red", options.nodes + 1)]
        replica = Replica(Paths.of(root=ROOT, state=Path(folder) / "replica"))
        try:
            seconds = []
            for number in range(options.questions + 1):
                team, pods = asked[number % len(asked)]
                job = read(yaml.safe_dump(gang("asked", team, pods, 8)), team)
                stands = (replica.paths.state / "asked.json").exists()
                began, own = time.monotonic(), time.process_time()
                answer = ask(replica, found, job, team, TEAMS[team])
                told(f"{'' if stands else 'new replica, '}{pods} x 8 GPUs of {team}: {answer.verdict}", began, own)
                seconds += [time.monotonic() - began] if stands else []
            print(f"replica's processes: {taken(replica.paths) / MIB:.0f} MiB")
        finally:
            local_cluster.kill(replica.paths)
    if seconds:
        print(f"a question to a replica that stands: {statistics.median(seconds):.1f} s, at most {max(seconds):.1f}")
    return 0


def told(what: str, began: float, own: float) -> None:
    """Print the duration of a step, and the CPU time of this process in it."""
    seconds = time.monotonic() - began
    print(f"{seconds:7.1f} s, {time.process_time() - own:5.1f} of them in this process:  {what}", flush=True)


def filled(size: Size, jobs: int) -> source.Source:
    """Return the content of a cluster of a size with these jobs of both teams. The cluster is deleted afterwards."""
    with local_project() as (paths, project):
        project.configure(settings(project, size))
        project.up()
        cluster = Cluster(paths.kubeconfig)
        for number in range(jobs):
            cluster.create(gang(f"job-{number}", list(TEAMS)[number % len(TEAMS)], 1, 4))
        fit = min(jobs, size.gpus // 4)
        eventually(
            "the jobs run that fit, and the others wait",
            lambda: [len(running(cluster)), len(cluster.list(KUEUE, "Workload"))],
            lambda found: found == [fit, jobs],
            seconds=1200,
        )
        began, own = time.monotonic(), time.process_time()
        found = source.read(paths.kubeconfig, None)
        told(f"{size.nodes} nodes and {jobs} jobs read", began, own)
        return found


def running(cluster: Cluster) -> list[str]:
    """Return the names of the teams' running pods."""
    pods = [pod for team in TEAMS for pod in cluster.list("v1", "Pod", team)]
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]


if __name__ == "__main__":
    sys.exit(main())
