"""Submits the jobs, waits for them, and deletes them."""

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import yaml
from kubernetes.dynamic.exceptions import NotFoundError

from components import names
from components.scheduling import coscheduling
from components.scheduling.second_scheduler import CONFIG_FILE
from components.tenancy.promises import Promise
from emulator.paths import Paths
from emulator.progress import duration
from lab.bench.admission import configure, started_anew
from lab.bench.scale import requests
from lab.bench.scale.memory import watched
from lab.bench.scale.plan import Job, best
from lab.bench.scale.result import Result
from lab.bench.scale.rows import Row, member, team_name
from lab.bench.scale.watching import PODS, WORKLOADS, Jobs, Watch
from lab.periodic import every
from lab.scenarios import stage
from runner.report import connect
from tests.local.admission import unbound
from tests.local.environment import Cluster

SUBMITTERS: Final = 10
"""Number of concurrent submitters, each for some of the teams."""
QUIET_SECONDS: Final = 12.0
"""Seconds without a newly bound pod, after which the other pods count as unschedulable."""
POLICY_SECONDS: Final = 3.0
"""Seconds until the API server notices that a policy is no longer bound."""
STALLED_SECONDS: Final = 300.0
"""Seconds without an admitted or deleted job, after which a row ends."""
REPORT_SECONDS: Final = 60.0
"""Seconds between progress lines of a row."""


class StalledError(Exception):
    """The row makes no progress; the message lists what is left."""


@dataclass
class Wave:
    """Measurements of a wave. submitted: time, by namespace and name. held: GPUs in use at most."""

    submitted: dict[tuple[str, str], float]
    held: int
    best: int
    halves: int


def measure(paths: Paths, row: Row, waves: Sequence[Sequence[Job]], teams: int, tell: Callable[[Result], None]) -> None:
    """Run all waves, one after the other, and report the results, even if the row ends early.

    Raises StalledError.
    """
    cluster = Cluster(paths.kubeconfig)
    namespaces = [row.namespace(team) for team in range(teams)]
    configure(cluster, row.title, row.configuration())
    if not row.by_kueue:
        configure_scheduler(cluster, row)
    jobs, found = Jobs(frozenset(namespaces)), list[Wave]()
    with ExitStack() as stack:
        if not row.in_team:
            prepare_plain(cluster, row, teams)
            stack.enter_context(started_everywhere(cluster))
        before, began = requests.asked(cluster), time.monotonic()
        after = before
        memory = stack.enter_context(watched(paths))
        for path, take in ((WORKLOADS, jobs.workload), (PODS, jobs.pod)):
            stack.enter_context(Watch(connect(paths.kubeconfig), path, take))

        def say() -> None:
            print(progress(row, waves, len(found), jobs, began), file=sys.stderr, flush=True)

        stack.enter_context(every(REPORT_SECONDS, say))
        try:
            for wave in waves:
                found.append(run(paths, cluster, row, jobs, wave, namespaces))
                after = requests.asked(cluster)
        finally:
            asked = requests.Asked(after) - requests.Asked(before)
            tell(result(row, found, len(waves), jobs, began, asked, memory))


def progress(row: Row, waves: Sequence[Sequence[Job]], over: int, jobs: Jobs, began: float) -> str:
    """Return the progress of a row. over: finished waves. began: start, of time.monotonic()."""
    wave = f"wave {min(over + 1, len(waves))} of {len(waves)}"
    admitted = f"{len(jobs.admitted)} of {sum(map(len, waves))} jobs admitted"
    there = f"{jobs.gpus} GPUs in use, {jobs.left} workloads and pods there"
    return f"{row.title}: {wave}, {admitted}, {there}, {duration(time.monotonic() - began)}"


def configure_scheduler(cluster: Cluster, row: Row) -> None:
    """Run the second scheduler with the row's configuration."""
    text = yaml.safe_dump(dict(row.scheduler_configuration()), sort_keys=False)
    namespace = coscheduling.NAMESPACE
    cluster.patch("v1", "ConfigMap", coscheduling.CONFIG_MAP, {"data": {CONFIG_FILE: text}}, namespace)
    selector = ",".join(f"{key}={value}" for key, value in coscheduling.SCHEDULER_LABELS.items())
    started_anew(cluster, row.title, coscheduling.SCHEDULER, namespace, selector)


def result(
    row: Row,
    waves: Sequence[Wave],
    planned: int,
    jobs: Jobs,
    began: float,
    asked: requests.Asked,
    memory: Mapping[str, int],
) -> Result:
    """Return the figures of the finished waves. planned: planned number of waves."""
    submitted = {job: at for wave in waves for job, at in wave.submitted.items()}
    seconds = sum(max(jobs.admitted[job] for job in wave.submitted) - min(wave.submitted.values()) for wave in waves)
    return Result(
        title=row.title,
        admitted_per_second=len(submitted) / seconds if seconds else math.nan,
        to_admission=sorted(jobs.admitted[job] - at for job, at in submitted.items()),
        to_start=sorted(jobs.started[job] - at for job, at in submitted.items() if job in jobs.started),
        held=sum(wave.held for wave in waves),
        best=sum(wave.best for wave in waves),
        halves=sum(wave.halves for wave in waves),
        asked=asked,
        memory=dict(memory),
        curve=[(at - began, gpus) for at, gpus in jobs.curve],
        waves=(len(waves), planned),
    )


def run(paths: Paths, cluster: Cluster, row: Row, jobs: Jobs, wave: Sequence[Job], namespaces: Sequence[str]) -> Wave:
    """Submit a wave, wait until it has settled, and delete it."""
    submitted = submit(paths, row, wave)
    await_moving(lambda: len(submitted.keys() - jobs.admitted.keys()), lambda left: f"{left} jobs are not admitted")
    pods = sum(job.pods for job in wave)
    await_moving(lambda: max(0, pods - jobs.made), lambda left: f"{left} pods are not made")
    wanted, since = best(wave), time.monotonic()
    while jobs.gpus < wanted and time.monotonic() - max(since, jobs.changed) < QUIET_SECONDS:
        time.sleep(0.2)
    up = jobs.pods
    sizes = {(row.namespace(job.team), job.name): job.pods for job in wave}
    halves = sum(0 < up[job] < pods for job, pods in sizes.items())
    found = Wave(submitted, jobs.gpus, wanted, halves)
    remove(cluster, row, namespaces)
    await_moving(lambda: jobs.left, lambda left: f"{left} workloads and pods do not go")
    return found


def submit(paths: Paths, row: Row, wave: Sequence[Job]) -> dict[tuple[str, str], float]:
    """Submit jobs as members of their teams, in the order of each team; return the time of each."""
    found: dict[tuple[str, str], float] = {}
    # Not concurrent: each client reads or writes a shared cache file of the API server's kinds.
    clusters = [Cluster(paths.kubeconfig) for _ in range(SUBMITTERS)]
    over = threading.Event()

    def some(number: int, cluster: Cluster) -> None:
        for job in wave:
            if over.is_set():
                return
            if job.team % SUBMITTERS == number:
                document = row.document(job)
                resource = cluster.kind(document["apiVersion"], document["kind"])
                namespace = row.namespace(job.team)
                found[namespace, job.name] = time.monotonic()
                headers = {"Impersonate-User": member(job.team)} if row.in_team else {}
                cluster.client.create(resource, body=document, namespace=namespace, header_params=headers)

    with ThreadPoolExecutor(SUBMITTERS) as pool:
        try:
            list(pool.map(some, range(SUBMITTERS), clusters))
        finally:
            over.set()  # the pool waits for its threads, even after an interrupt
    return found


def await_moving(left: Callable[[], int], say: Callable[[int], str]) -> None:
    """Wait until no job is left. Raises StalledError if the number does not fall for a long time."""
    least, since = left(), time.monotonic()
    while found := left():
        if found < least:
            least, since = found, time.monotonic()
        if time.monotonic() - since > STALLED_SECONDS:
            raise StalledError(f"{say(found)}, and none more for {STALLED_SECONDS:.0f} s")
        time.sleep(0.1)


def prepare_plain(cluster: Cluster, row: Row, teams: int) -> None:
    """Create namespaces without a team, whose Jobs use the teams' queues."""
    for document in plain_documents(row, teams):
        if not cluster.get(document["apiVersion"], document["kind"], *_identity(document)):
            cluster.create(document)


@contextmanager
def started_everywhere(cluster: Cluster) -> Iterator[None]:
    """Let Kueue and AppWrapper start jobs in namespaces without a team for the length of the context.

    The platform's policies otherwise forbid it.
    """
    with unbound(cluster, Promise.KUEUE_SCOPE.policy), unbound(cluster, Promise.APPWRAPPER_SCOPE.policy):
        time.sleep(POLICY_SECONDS)
        yield


def plain_documents(row: Row, teams: int) -> Iterator[dict[str, Any]]:
    """Yield a namespace and its LocalQueue for each team."""
    for team in range(teams):
        namespace = row.namespace(team)
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        yield {
            "apiVersion": names.KUEUE_API,
            "kind": "LocalQueue",
            "metadata": {"name": names.LOCAL_QUEUE, "namespace": namespace},
            "spec": {"clusterQueue": f"{team_name(team)}-cluster-queue"},
        }


def remove(cluster: Cluster, row: Row, namespaces: Sequence[str]) -> None:
    """Delete all jobs; retry if the API server is too busy."""
    api, kind = (names.APPWRAPPER_API, "AppWrapper") if row.wrapped else ("batch/v1", "Job")
    resource = cluster.kind(api, kind)
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    for namespace in namespaces:
        asking = {"namespace": namespace, "field_selector": f"metadata.namespace={namespace}", "body": body}
        with contextlib.suppress(NotFoundError):
            stage.asked(partial(cluster.client.delete, resource, **asking))


def _identity(document: dict[str, Any]) -> tuple[str, str | None]:
    return document["metadata"]["name"], document["metadata"].get("namespace")
