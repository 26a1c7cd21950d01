"""The dev stack on the local cluster: up, no change, queueing, borrowing, recovery, drift, interruption, destroy.

The tests of this module run in order on one stack that is stood up once.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.local.environment import Cluster, Project, dev_settings, eventually, gang, submitted

KUEUE = "kueue.x-k8s.io/v1beta2"
APPWRAPPER = "workload.codeflare.dev/v1beta2"
RBAC = "rbac.authorization.k8s.io/v1"
SLACK = "slack-cluster-queue"


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Project]) -> Project:
    return make_project("dev")


@pytest.fixture(scope="module")
def settings(project: Project) -> dict[str, Any]:
    return dev_settings(project.mirror)


@pytest.fixture(scope="module", autouse=True)
def platform(project: Project, settings: dict[str, Any], cluster: Cluster) -> Iterator[None]:
    """The platform with its sample gang, stood up once for the module."""
    project.configure(settings)
    project.up()
    yield
    project.destroy()


def phase(cluster: Cluster, namespace: str, name: str) -> str | None:
    wrapper = cluster.get(APPWRAPPER, "AppWrapper", name, namespace)
    return (wrapper.get("status") or {}).get("phase") if wrapper else None


def running(cluster: Cluster, namespace: str, name: str, pods: int) -> None:
    eventually(f"{namespace}/{name} runs", lambda: phase(cluster, namespace, name), lambda p: p == "Running")
    eventually(
        f"{namespace}/{name} has {pods} running pods",
        lambda: [pod for pod in pods_of(cluster, namespace, name) if pod["status"]["phase"] == "Running"],
        lambda found: len(found) == pods,
    )


def pods_of(cluster: Cluster, namespace: str, name: str) -> list[dict[str, Any]]:
    return cluster.list("v1", "Pod", namespace, label_selector=f"workload.codeflare.dev/appwrapper={name}")


def lending_limit(cluster: Cluster) -> str | None:
    queue = cluster.get(KUEUE, "ClusterQueue", SLACK)
    assert queue is not None
    resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    return next(item.get("lendingLimit") for item in resources if item["name"] == "nvidia.com/gpu")


@pytest.fixture
def idle(cluster: Cluster, project: Project, settings: dict[str, Any]) -> None:
    """The cluster without the sample gang, for tests that count GPUs."""
    for wrapper in cluster.list(APPWRAPPER, "AppWrapper"):
        cluster.delete(APPWRAPPER, "AppWrapper", wrapper["metadata"]["name"], wrapper["metadata"]["namespace"])
    eventually("no AppWrapper is left", lambda: cluster.list(APPWRAPPER, "AppWrapper"), lambda found: not found)


def test_a_second_preview_plans_nothing(project: Project) -> None:
    project.unchanged()


def test_the_sample_gang_runs_on_two_nodes(cluster: Cluster) -> None:
    (wrapper,) = cluster.list(APPWRAPPER, "AppWrapper")
    name, namespace = wrapper["metadata"]["name"], wrapper["metadata"]["namespace"]
    running(cluster, namespace, name, pods=2)
    assert len({pod["spec"]["nodeName"] for pod in pods_of(cluster, namespace, name)}) == 2


def test_no_secret_stands_in_plain_state(project: Project, paths: Any) -> None:
    token = paths.kubeconfig.read_text().split("token:")[1].split()[0]
    state = project.state_file.read_text()
    assert token not in state
    assert '"kubernetes' in state or "kubernetes:" in state


def test_a_gang_above_the_lendable_quota_waits(cluster: Cluster, idle: None) -> None:
    with submitted(cluster, gang("too-big", "blue", pods=4, gpus=8)):
        workload = eventually(
            "Kueue has looked at the workload",
            lambda: [w for w in cluster.list(KUEUE, "Workload", "blue") if (w.get("status") or {}).get("conditions")],
        )[0]
        conditions = {item["type"]: item for item in workload["status"]["conditions"]}
        assert conditions["QuotaReserved"]["status"] == "False"
        assert "nvidia.com/gpu" in conditions["QuotaReserved"]["message"]
        assert phase(cluster, "blue", "too-big") == "Suspended"
        assert pods_of(cluster, "blue", "too-big") == []


def test_a_borrower_is_preempted_when_the_owner_comes_back(cluster: Cluster, idle: None) -> None:
    borrowers = [gang(f"blue-{index}", "blue", pods=1, gpus=8) for index in range(3)]
    with submitted(cluster, *borrowers):
        for index in range(3):
            running(cluster, "blue", f"blue-{index}", pods=1)
        with submitted(cluster, gang("red-gang", "red", pods=2, gpus=4)):
            running(cluster, "red", "red-gang", pods=2)
            phases = sorted(str(phase(cluster, "blue", f"blue-{index}")) for index in range(3))
            assert phases == ["Running", "Running", "Suspended"]


def test_a_sick_node_lowers_what_the_slack_queue_lends(cluster: Cluster, project: Project) -> None:
    node = next(n for n in cluster.list("v1", "Node") if "nvidia.com/gpu" in n["status"]["allocatable"])
    name = node["metadata"]["name"]
    assert lending_limit(cluster) is None
    try:
        cluster.patch("v1", "Node", name, {"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": "EVICT"}}})
        eventually("the slack queue lends nothing", lambda: lending_limit(cluster), lambda limit: limit == "0")
        project.unchanged()
    finally:
        cluster.patch("v1", "Node", name, {"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": None}}})
    eventually("the slack queue lends all again", lambda: lending_limit(cluster), lambda limit: limit is None)


def test_a_reset_gang_gets_the_slack_and_runs_again(cluster: Cluster, idle: None) -> None:
    """A node with a broken GPU: its gang restarts elsewhere, at the cost of what was lent from the slack."""
    borrowers = [gang(f"blue-{index}", "blue", pods=1, gpus=8) for index in range(2)]
    with submitted(cluster, *borrowers, gang("red-job", "red", pods=1, gpus=8)):
        running(cluster, "red", "red-job", pods=1)
        for index in range(2):
            running(cluster, "blue", f"blue-{index}", pods=1)
        (pod,) = pods_of(cluster, "red", "red-job")
        sick = pod["spec"]["nodeName"]
        try:
            cluster.patch("v1", "Node", sick, {"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": "EVICT"}}})
            moved = eventually(
                "the gang runs on another node",
                lambda: [p["spec"].get("nodeName") for p in pods_of(cluster, "red", "red-job")],
                lambda nodes: len(nodes) == 1 and nodes[0] not in (None, sick),
                seconds=120,
            )
            assert moved
            phases = sorted(str(phase(cluster, "blue", f"blue-{index}")) for index in range(2))
            assert phases == ["Running", "Suspended"]
        finally:
            cluster.patch("v1", "Node", sick, {"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": None}}})


def test_an_idle_cluster_gets_its_sample_back(project: Project, cluster: Cluster) -> None:
    project.up()
    assert len(cluster.list(APPWRAPPER, "AppWrapper")) == 1
    project.unchanged()


EDITS = [
    ("v1", "Namespace", "blue", None, {"metadata": {"labels": {"mlbatch-team-namespace": "false"}}}),
    (KUEUE, "LocalQueue", "default-queue", "blue", {"metadata": {"annotations": None, "labels": {"x": "y"}}}),
    (RBAC, "ClusterRole", "mlbatch-edit", None, {"rules": []}),
    (RBAC, "RoleBinding", "alice", "blue", {"subjects": []}),
    ("v1", "ConfigMap", "kueue-manager-config", "mlbatch-system", {"data": {"controller_manager_config.yaml": "{}"}}),
]


def test_quota_edited_by_hand_is_named_and_put_back(project: Project, cluster: Cluster) -> None:
    queue = cluster.get(KUEUE, "ClusterQueue", "blue-cluster-queue")
    assert queue is not None
    groups = queue["spec"]["resourceGroups"]
    for resource in groups[0]["flavors"][0]["resources"]:
        if resource["name"] == "nvidia.com/gpu":
            resource["nominalQuota"] = "7"
    cluster.patch(KUEUE, "ClusterQueue", "blue-cluster-queue", {"spec": {"resourceGroups": groups}})
    assert "blue-cluster-queue" in project.drift() or "nominalQuota" in project.drift()
    project.up()
    restored = cluster.get(KUEUE, "ClusterQueue", "blue-cluster-queue")
    assert restored is not None
    resources = restored["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert {item["name"]: item["nominalQuota"] for item in resources}["nvidia.com/gpu"] == "8"
    project.unchanged()
