"""How fast jobs are admitted: upstream's limits of Kueue's client, compared with the platform's.

Ten teams submit the requested number of AppWrappers at once, with one GPU each. All are within quota, and the simulated
nodes have room for all. A row is one configuration of the same Kueue on the same cluster. Its time runs from the first
submission to the last admission.
"""

import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from components import names
from components.queueing import kueue
from emulator.paths import Paths
from emulator.progress import duration
from lab.bench.budget import Budget
from lab.scenarios.size import sized
from runner.report import is_true
from tests.local.environment import Cluster, Project, eventually, gang

TEAMS: Final = 10
GPUS_PER_NODE: Final = 8
_MANAGER: Final = "kueue-controller-manager"
_MANAGERS: Final = "app.kubernetes.io/name=kueue,control-plane=controller-manager"
_PATIENCE_SECONDS: Final = 900
_SECONDS: Final = 80.0
"""Approximate duration of the platform's start and the first row."""


@dataclass(frozen=True)
class Limits:
    """Limits of Kueue's client, and its number of concurrent AppWrappers.

    queries: per second.
    burst: in a row.
    workers: concurrent AppWrappers. None for the platform's values.
    """

    title: str
    queries: int | None = None
    burst: int | None = None
    workers: int | None = None

    def configuration(self) -> dict[str, Any]:
        """Return the manager's configuration with these limits."""
        found: dict[str, Any] = deepcopy(dict(kueue.configuration()))
        if self.queries is not None:
            found["clientConnection"] = {"qps": self.queries, "burst": self.burst}
        if self.workers is not None:
            found["controller"]["groupKindConcurrency"][kueue.APPWRAPPER_KIND] = self.workers
        return found


ROWS: Final = (
    Limits("upstream's", workers=1),
    Limits("the platform's"),
    Limits("more queries", queries=1000, burst=2000),
    Limits("more queries, one worker", queries=1000, burst=2000, workers=1),
)
"""The two important rows come first. The others show the effect of more requests."""


def lines(paths: Paths, folder: Path, jobs: int, budget: Budget) -> Iterator[str]:
    """Measure each configuration; yield a table, row by row."""
    expected = _SECONDS
    if not budget.allows("admission", expected):
        return
    project = Project(folder / "admission", paths, "admission")
    project.configure(bench_settings(project.mirror, jobs))
    began = time.monotonic()
    project.up()
    yield f"platform for {jobs} jobs of {TEAMS} teams: {duration(time.monotonic() - began)}"
    cluster = Cluster(paths.kubeconfig)
    yield f"{'limits of Kueue':39}    qps  burst  workers | submitted/s  admitted/s  ratio"
    first = None
    for row in ROWS:
        if not budget.allows(f"admission with {row.title}", expected):
            continue
        began = time.monotonic()
        configure(cluster, row.title, row.configuration())
        submitted, admitted = measure(paths, cluster, jobs)
        first = first or admitted
        yield line(row, submitted, admitted, admitted / first)
        remove(cluster)
        expected = time.monotonic() - began
    project.destroy()


def line(row: Limits, submitted: float, admitted: float, ratio: float) -> str:
    """Return a row of the table. submitted, admitted: jobs per second. ratio: of admitted to the first row's."""
    configuration = row.configuration()
    client = configuration["clientConnection"]
    workers = configuration["controller"]["groupKindConcurrency"][kueue.APPWRAPPER_KIND]
    return (
        f"{row.title:39}  {client['qps']:5}  {client['burst']:5}  {workers:7} "
        f"| {submitted:11.1f}  {admitted:10.1f}  {ratio:5.1f}"
    )


def bench_settings(mirror: Path | None, jobs: int) -> dict[str, Any]:
    """Return the dev settings with ten teams whose quotas fit all jobs, and enough nodes."""
    each = math.ceil(jobs / TEAMS)
    quota = {"cpu": each, "memory": f"{each}Gi", names.GPU: each, "pods": each}
    teams = [{"name": team(index), "users": [], "quota": quota} for index in range(TEAMS)]
    return sized(mirror, math.ceil(each * TEAMS / GPUS_PER_NODE) + 1, teams, {})


def team(index: int) -> str:
    return f"team-{index}"


def configure(cluster: Cluster, title: str, configuration: Mapping[str, Any]) -> None:
    """Restart Kueue with a configuration, and wait until the new manager leads."""
    system = names.SYSTEM_NAMESPACE
    body = {"data": {kueue.CONFIG_KEY: yaml.safe_dump(dict(configuration), sort_keys=False)}}
    cluster.patch("v1", "ConfigMap", kueue.CONFIG_MAP, body, system)
    new = started_anew(cluster, title, _MANAGER, system, _MANAGERS)
    lease = configuration["leaderElection"]["resourceName"]
    eventually(
        "a new manager leads",
        lambda: (cluster.get("coordination.k8s.io/v1", "Lease", lease, system) or {})["spec"]["holderIdentity"],
        lambda holder: str(holder).startswith(tuple(new)),
        seconds=_PATIENCE_SECONDS,
    )


def started_anew(cluster: Cluster, title: str, deployment: str, namespace: str, selector: str) -> list[str]:
    """Replace a Deployment's pods, wait until only the new ones exist and are ready, and return their names.

    title: the purpose of the restart. The same title as before does not restart them.
    """
    old = set(readiness(cluster, namespace, selector))
    annotation = {"mlbatch.bench/row": title}
    template = {"spec": {"template": {"metadata": {"annotations": annotation}}}}
    cluster.patch("apps/v1", "Deployment", deployment, template, namespace)
    new = eventually(
        f"new pods of {deployment} run, and no old one",
        lambda: readiness(cluster, namespace, selector),
        lambda found: bool(found) and not old & found.keys() and all(found.values()),
        seconds=_PATIENCE_SECONDS,
    )
    return list(new)


def readiness(cluster: Cluster, namespace: str, selector: str) -> dict[str, bool]:
    """Return pods by name, and whether each is ready."""
    pods = cluster.list("v1", "Pod", namespace, label_selector=selector)
    return {str(pod["metadata"]["name"]): is_true(pod, "Ready") for pod in pods}


def measure(paths: Paths, cluster: Cluster, jobs: int) -> tuple[float, float]:
    """Submit the jobs and wait for their admission; return the submitted and the admitted jobs per second."""
    by_team = [
        [gang(f"job-{job}", team(index), pods=1, gpus=1) for job in range(index, jobs, TEAMS)] for index in range(TEAMS)
    ]

    members = [Cluster(paths.kubeconfig) for _ in by_team]

    def submit(member: Cluster, wrappers: list[dict[str, Any]]) -> None:
        for wrapper in wrappers:
            member.create(wrapper)

    began = time.monotonic()
    with ThreadPoolExecutor(TEAMS) as pool:
        list(pool.map(submit, members, by_team))
    submitted = jobs / (time.monotonic() - began)
    eventually(
        "all jobs are admitted", lambda: admitted(cluster), lambda number: number == jobs, _PATIENCE_SECONDS, every=0.5
    )
    rate = jobs / (time.monotonic() - began)
    return submitted, rate


def remove(cluster: Cluster) -> None:
    """Delete all jobs, and wait until Kueue counts none."""
    resource = cluster.kind(names.APPWRAPPER_API, "AppWrapper")
    for name in map(team, range(TEAMS)):
        cluster.client.delete(resource, namespace=name, field_selector=f"metadata.namespace={name}")
    eventually(
        "all jobs are gone",
        lambda: len(cluster.list(names.APPWRAPPER_API, "AppWrapper")) + admitted(cluster),
        lambda number: number == 0,
        _PATIENCE_SECONDS,
        every=1,
    )


def admitted(cluster: Cluster) -> int:
    """Return the number of admitted jobs in the queues' status."""
    queues = cluster.list(names.KUEUE_API, "ClusterQueue")
    return sum(int((queue.get("status") or {}).get("admittedWorkloads") or 0) for queue in queues)
