"""Jobs and limits in the tests."""

from typing import Any

from tests.local.environment import Cluster, eventually

KUEUE = "kueue.x-k8s.io/v1beta2"
APPWRAPPER = "workload.codeflare.dev/v1beta2"
GPU = "nvidia.com/gpu"
HEALTH = "autopilot.ibm.com/gpuhealth"
SLACK = "slack-cluster-queue"


def phase(cluster: Cluster, namespace: str, name: str) -> str | None:
    """Return the phase of an AppWrapper."""
    wrapper = cluster.get(APPWRAPPER, "AppWrapper", name, namespace)
    return (wrapper.get("status") or {}).get("phase") if wrapper else None


def running(cluster: Cluster, namespace: str, name: str, pods: int) -> None:
    """Wait until an AppWrapper runs, with this many running pods."""
    eventually(f"{namespace}/{name} runs", lambda: phase(cluster, namespace, name), lambda p: p == "Running")
    eventually(
        f"{namespace}/{name} has {pods} running pods",
        lambda: [pod for pod in pods_of(cluster, namespace, name) if pod["status"]["phase"] == "Running"],
        lambda found: len(found) == pods,
    )


def pods_of(cluster: Cluster, namespace: str, name: str) -> list[dict[str, Any]]:
    """Return the pods of an AppWrapper."""
    return cluster.list("v1", "Pod", namespace, label_selector=f"workload.codeflare.dev/appwrapper={name}")


def lending_limit(cluster: Cluster, queue: str = SLACK, resource: str = GPU) -> str | None:
    """Return the largest amount of a resource that a queue lends, None for its whole quota."""
    found = cluster.get(KUEUE, "ClusterQueue", queue)
    assert found is not None
    resources = found["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    limit: str | None = next(item.get("lendingLimit") for item in resources if item["name"] == resource)
    return limit


def gpu_nodes(cluster: Cluster) -> list[str]:
    """Return the names of the nodes with GPUs."""
    return [n["metadata"]["name"] for n in cluster.list("v1", "Node") if GPU in (n["status"].get("allocatable") or {})]


def mark(cluster: Cluster, node: str, health: str | None) -> None:
    """Label a node like Autopilot: EVICT for broken GPUs, None for none."""
    cluster.patch("v1", "Node", node, {"metadata": {"labels": {HEALTH: health}}})


def cordon(cluster: Cluster, node: str, is_cordoned: bool) -> None:
    """Cordon or uncordon a node."""
    cluster.patch("v1", "Node", node, {"spec": {"unschedulable": is_cordoned or None}})
