"""The reports of `make up` and `make status`: the local cluster, nodes, charts, queues, teams and workloads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kubernetes
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from emulator.charts.releases import SELECTOR
from emulator.charts.report import report as charts_report
from emulator.cluster import ClusterStatus

GPU = "nvidia.com/gpu"
TEAM_LABEL = "mlbatch-team-namespace=true"
KUEUE = "kueue.x-k8s.io/v1beta2"
APPWRAPPER = "workload.codeflare.dev/v1beta2"


def cluster_report(status: ClusterStatus) -> str:
    """Describe the local cluster: its processes as they are now, with their logs."""
    rows = [(p.name, p.state, p.pid or "-", p.restarts, p.log) for p in status.processes]
    answers = "ready" if status.ready else "not ready"
    title = f"Local cluster: {answers}{f', {status.server}' if status.server else ''}"
    left = [f"  left over from an earlier run: {pid} {command}" for pid, command in status.leftovers.items()]
    return "\n".join([_section(title, ["PROCESS", "STATE", "PID", "RESTARTS", "LOG"], rows), *left])


def platform_report(kubeconfig: Path) -> str:
    """Describe the platform on the cluster that the kubeconfig names.

    Raises the Kubernetes client's exceptions when the cluster does not answer.
    """
    client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(str(kubeconfig)))
    releases = _list(client, "v1", "Secret", label_selector=SELECTOR)
    charts = [charts_report(releases, _list(client, "v1", "Pod"))] if releases else []
    return "\n\n".join(
        [
            _section("Nodes", ["INSTANCE TYPE", "NODES", "READY", "GPUS"], _nodes(client)),
            *charts,
            _section(
                "Queues", ["CLUSTERQUEUE", "GPU QUOTA", "LENDABLE", "IN USE", "BORROWED", "PENDING"], _queues(client)
            ),
            _section("Teams", ["NAMESPACE", "QUEUE", "USERS"], _teams(client)),
            _section("Workloads", ["NAMESPACE", "APPWRAPPER", "STATE", "PODS"], _workloads(client)),
        ]
    )


def await_settled(kubeconfig: Path, seconds: float = 15.0) -> None:
    """Wait until the queues' own figures, which follow the pods with a delay, have caught up; at most these seconds."""
    client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(str(kubeconfig)))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and _reserved_gpus(client) < _running_gpus(client):
        time.sleep(0.5)


def _reserved_gpus(client: kubernetes.dynamic.DynamicClient) -> int:
    return sum(int(row[3]) for row in _queues(client))


def _running_gpus(client: kubernetes.dynamic.DynamicClient) -> int:
    pods = _list(client, "v1", "Pod", label_selector="workload.codeflare.dev/appwrapper")
    running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
    containers = [container for pod in running for container in pod["spec"]["containers"]]
    return sum(int(((item.get("resources") or {}).get("limits") or {}).get(GPU, 0)) for item in containers)


def _nodes(client: kubernetes.dynamic.DynamicClient) -> Iterable[Sequence[Any]]:
    count: Counter[str] = Counter()
    ready: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for node in _list(client, "v1", "Node"):
        kind = (node["metadata"].get("labels") or {}).get("node.kubernetes.io/instance-type", "(controllers)")
        conditions = {item["type"]: item["status"] for item in node["status"].get("conditions") or ()}
        count[kind] += 1
        ready[kind] += conditions.get("Ready") == "True"
        gpus[kind] += int((node["status"].get("allocatable") or {}).get(GPU, 0))
    return [(kind, count[kind], ready[kind], gpus[kind]) for kind in sorted(count)]


def _queues(client: kubernetes.dynamic.DynamicClient) -> Iterable[Sequence[Any]]:
    for queue in _list(client, KUEUE, "ClusterQueue"):
        status = queue.get("status") or {}
        quota = _gpu(
            [r for g in queue["spec"].get("resourceGroups") or () for f in g["flavors"] for r in f["resources"]]
        )
        used = _gpu([r for flavor in status.get("flavorsReservation") or () for r in flavor["resources"]])
        yield (
            queue["metadata"]["name"],
            quota.get("nominalQuota", "-"),
            quota.get("lendingLimit", "all"),
            used.get("total", "0"),
            used.get("borrowed", "0"),
            status.get("pendingWorkloads", 0),
        )


def _teams(client: kubernetes.dynamic.DynamicClient) -> Iterable[Sequence[Any]]:
    for namespace in _list(client, "v1", "Namespace", label_selector=TEAM_LABEL):
        name = namespace["metadata"]["name"]
        queues = [item["spec"]["clusterQueue"] for item in _list(client, KUEUE, "LocalQueue", namespace=name)]
        bindings = _list(client, "rbac.authorization.k8s.io/v1", "RoleBinding", namespace=name)
        users = sorted({s["name"] for b in bindings for s in b.get("subjects") or () if s["kind"] in ("User", "Group")})
        yield name, ", ".join(queues) or "-", ", ".join(users) or "-"


def _workloads(client: kubernetes.dynamic.DynamicClient) -> Iterable[Sequence[Any]]:
    for wrapper in _list(client, APPWRAPPER, "AppWrapper"):
        metadata = wrapper["metadata"]
        selector = f"workload.codeflare.dev/appwrapper={metadata['name']}"
        pods = _list(client, "v1", "Pod", namespace=metadata["namespace"], label_selector=selector)
        phases = Counter(pod["status"]["phase"] for pod in pods)
        shown = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items())) or "none"
        yield metadata["namespace"], metadata["name"], (wrapper.get("status") or {}).get("phase", "new"), shown


def _gpu(resources: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((resource for resource in resources if resource["name"] == GPU), {})


def _list(client: kubernetes.dynamic.DynamicClient, version: str, kind: str, **options: Any) -> list[dict[str, Any]]:
    try:
        resource = client.resources.get(api_version=version, kind=kind)
    except ResourceNotFoundError:
        return []
    return list(client.get(resource, **options).to_dict()["items"])


def _section(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    table = [[str(cell) for cell in row] for row in [header, *rows]]
    if len(table) == 1:
        return f"{title}\n  none"
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([title, *(f"  {line}" for line in lines)])
