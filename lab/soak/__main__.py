"""Run jobs on a local cluster whose nodes and controllers keep failing, and check the platform's promises.

Fails if a job is lost or fails, or if a team has less than its quota for longer than the bound in docs/recovery.md. A
seed decides when events happen.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from http.client import CONFLICT
from pathlib import Path

from kubernetes.client.exceptions import ApiException

from components.tenancy.bounds import MOST_JOBS
from lab.gameday.size import RECOVERY, Size, settings
from lab.pods import OF_JOB, is_up
from lab.scenarios.stage import asked
from lab.soak.breaking import Breaking
from lab.soak.judge import Judge
from lab.soak.trace import GPUS_PER_NODE, NODES, QUOTAS, Event, Job, trace
from tests.bounds import recovery
from tests.commands import Parser, whole
from tests.local.environment import Cluster, Project, gang, local_environment
from tests.local.jobs import APPWRAPPER, HEALTH, KUEUE

STALLED = 900
"""Seconds without a submitted or finished job that end a run. The longest job runs for 240, and restarts with each node
that it loses.
"""


class Run:
    """One run on a cluster."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job], events: Sequence[Event]) -> None:
        self.cluster, self.to_come, self.faults = cluster, list(jobs), list(events)
        self.judge = Judge({job.name: job for job in jobs}, recovery(RECOVERY["recoveryTimeoutSeconds"]))
        self.began = time.monotonic()
        self.breaking = Breaking(cluster)
        self.nodes = self.breaking.nodes
        self.open: dict[str, Job] = {}
        self.ends: list[Event] = []
        self.seen: Counter[str] = Counter()
        self.phases: dict[str, str] = {}
        self.evictions: dict[str, int] = {}
        self.refused = 0
        self.moved = 0.0
        self.used = self.offered = 0.0

    @property
    def now(self) -> float:
        return time.monotonic() - self.began

    def go(self) -> None:
        """Run until all jobs have finished, or none finishes any more."""
        told, last = 0.0, self.now
        while (self.to_come or self.open) and self.now < self.moved + STALLED:
            self._submit()
            self._break()
            elapsed, last = self.now - last, self.now
            asked(lambda elapsed=elapsed: self._look(elapsed))
            if self.now - told > 20:
                told = self.now
                print(self.line(), flush=True)
            time.sleep(1)
        for event in self.ends:
            asked(lambda event=event: self.breaking.end(event))

    def _submit(self) -> None:
        while self.to_come and self.to_come[0].at <= self.now:
            job = self.to_come[0]
            try:
                self.cluster.create(gang(job.name, job.team, job.pods, GPUS_PER_NODE, job.seconds))
            except ApiException as error:
                # An existing job was accepted, although the response was lost.
                if error.status != CONFLICT:
                    self.refused += 1
                    print(f"{self.now:6.0f} s  {job.name} was refused: {str(error.body)[:400]}", flush=True)
                    return
            self.open[job.name] = self.to_come.pop(0)
            self.moved = self.now

    def _break(self) -> None:
        for event in [event for event in self.ends if event.until <= self.now]:
            asked(lambda event=event: self.breaking.end(event))
            self.ends.remove(event)
        while self.faults and self.faults[0].at <= self.now and self.to_come:
            event = self.faults.pop(0)
            self.seen[event.fault] += 1
            print(f"{self.now:6.0f} s  {event.fault}" + (f": {self.nodes[event.node]}" if event.until else ""))
            asked(lambda event=event: self.breaking.start(event))
            if event.until:
                self.ends.append(event)

    def _look(self, elapsed: float) -> None:
        nodes = {node["metadata"]["name"]: node for node in self.cluster.list("v1", "Node")}
        there = {name for name in self.nodes if name in nodes}
        sick = {name for name in there if (nodes[name]["metadata"].get("labels") or {}).get(HEALTH) == "EVICT"}
        usable = {name for name in there - sick if not nodes[name]["spec"].get("unschedulable")}
        running: set[str] = set()
        for team in QUOTAS:
            wrappers = {item["metadata"]["name"]: item for item in self.cluster.list(APPWRAPPER, "AppWrapper", team)}
            up: Counter[str] = Counter()
            for pod in self.cluster.list("v1", "Pod", team):
                job = (pod["metadata"].get("labels") or {}).get(OF_JOB, "")
                up[job] += is_up(pod) and pod["spec"].get("nodeName") in there - sick
            for workload in self.cluster.list(KUEUE, "Workload", team):
                state = (workload.get("status") or {}).get("requeueState") or {}
                self.evictions[workload["metadata"]["name"]] = state.get("count") or 0
            for name, job in [(name, job) for name, job in self.open.items() if job.team == team]:
                phase = (wrappers[name].get("status") or {}).get("phase", "") if name in wrappers else "Lost"
                self.phases[name] = phase
                if phase in ("Succeeded", "Failed", "Lost"):
                    del self.open[name]
                    self.moved = self.now
                    if phase != "Succeeded":
                        print(f"{self.now:6.0f} s  {team}/{name} {phase}", flush=True)
                elif up[name] >= job.pods:
                    running.add(name)
        healthy = len(usable) * GPUS_PER_NODE
        self.used += elapsed * sum(self.judge.jobs[name].gpus for name in running)
        self.offered += elapsed * healthy
        self.judge.look(self.now, open_jobs=list(self.open), running=running, healthy_gpus=healthy)
        self._running, self._healthy = len(running), len(usable)

    def line(self) -> str:
        done = Counter(self.phases.values())
        return (
            f"{self.now:6.0f} s  {len(self.to_come)} to come, {len(self.open) - self._running} wait, "
            f"{self._running} run, {done['Succeeded']} succeeded, {done['Failed']} failed; {self._healthy} of {NODES} "
            f"nodes well; longest wait inside a quota {self.judge.worst:.0f} s of {self.judge.bound:.0f}"
        )

    def faults_found(self) -> list[str]:
        """Return the broken promises."""
        names = {state: [name for name, phase in self.phases.items() if phase == state] for state in ("Failed", "Lost")}
        found = [f"{state.lower()}: {', '.join(jobs)}" for state, jobs in names.items() if jobs]
        if self.judge.late:
            found.append(f"below quota for longer than {self.judge.bound:.0f} s: {', '.join(sorted(self.judge.late))}")
        if unfinished := [*self.open, *(job.name for job in self.to_come)]:
            found.append(f"not through after {self.now:.0f} s: {', '.join(unfinished)}")
        return found

    def figures(self) -> str:
        """Return the figures of the whole run."""
        succeeded = Counter(self.phases.values())["Succeeded"]
        return "\n".join(
            [
                f"{len(self.judge.jobs)} jobs in {self.now:.0f} s: {succeeded} succeeded",
                f"faults: {', '.join(f'{count} {fault}' for fault, count in sorted(self.seen.items()))}",
                f"submissions refused and made again: {self.refused}",
                f"jobs that Kueue queued again because they starved: {sum(self.evictions.values())} times",
                f"longest time below quota: {self.judge.worst:.0f} s, bound {self.judge.bound:.0f} s",
                f"GPUs in use of those that were well: {100 * self.used / max(1.0, self.offered):.0f} %",
            ]
        )


def most_jobs(jobs: Sequence[Job]) -> int:
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
    print(f"seed {options.seed}: {len(jobs)} jobs in {jobs[-1].at:.0f} s, {len(events)} faults", flush=True)
    with tempfile.TemporaryDirectory(prefix="mlbatch-soak-") as folder, local_environment() as paths:
        project = Project(Path(folder), paths, "dev")
        project.configure(settings(project, Size(NODES)))
        project.up()
        run = Run(Cluster(paths.kubeconfig), jobs, events)
        run.go()
    print(run.figures())
    if problems := run.faults_found():
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
