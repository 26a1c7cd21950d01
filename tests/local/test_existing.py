"""The platform on a cluster with existing nodes: facts that it reads from them, and their effects."""

from typing import Any

import pytest

from cli.app import main
from emulator.paths import Paths
from tests.local.environment import (
    OPERATORS,
    Cluster,
    Project,
    eventually,
    is_ready,
    machines,
    mirrored,
    stack_settings,
)
from tests.local.jobs import pods_of, running
from tests.local.standing import Standing

KUEUE = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def project(standing: Standing, site_nodes: list[str]) -> Project:
    """Return the example's project, with all operators of jobs."""

    def settings(project: Project) -> dict[str, Any]:
        base = stack_settings("existing")
        return {**base, **mirrored(project.mirror), "queueing": {**base.get("queueing", {}), **OPERATORS}}

    return standing.up("existing", settings)


def quotas(cluster: Cluster) -> dict[str, str]:
    found = {}
    for queue in cluster.list(KUEUE, "ClusterQueue"):
        resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        found[queue["metadata"]["name"]] = next(item["nominalQuota"] for item in resources if item["name"] == GPU)
    return found


def test_quotas_follow_the_existing_nodes_and_a_second_preview_plans_no_change(
    project: Project, cluster: Cluster
) -> None:
    assert quotas(cluster) == {"slack-cluster-queue": "8", "blue-cluster-queue": "8", "red-cluster-queue": "8"}
    project.unchanged()


def test_the_gang_runs_on_the_sites_own_nodes(project: Project, cluster: Cluster) -> None:
    running(cluster, "blue", "sample-gang", pods=2)
    pods = pods_of(cluster, "blue", "sample-gang")
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"lab-gpu-0", "lab-gpu-1", "lab-gpu-2"}
    assert len(pods) == 2


def test_controllers_run_where_the_site_wants_them(project: Project, cluster: Cluster) -> None:
    pods = cluster.list("v1", "Pod", "mlbatch-system")
    assert {pod["spec"]["nodeName"] for pod in pods} == set(machines(cluster))
    assert all(pod["spec"]["nodeSelector"] == {"pool": "system"} for pod in pods)


def test_the_cluster_is_identified_by_its_uid(project: Project, cluster: Cluster) -> None:
    namespace = cluster.get("v1", "Namespace", "kube-system")
    assert namespace is not None
    (provider,) = [item for item in project.resources() if item["type"] == "pulumi:providers:kubernetes"]
    assert provider["inputs"]["clusterIdentifier"] == namespace["metadata"]["uid"]


def test_no_attack_goes_through(project: Project, paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["attack", "--kubeconfig", str(paths.kubeconfig)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "like blue" in said
    assert "no such kind" not in said
    assert "refused by policy mlbatch-team-own-volumes" in said


@pytest.mark.soak("three minutes; tests/unit/test_quotas.py has the law of shares")
def test_a_removed_node_changes_only_the_queues_with_shares(project: Project, cluster: Cluster) -> None:
    node = cluster.get("v1", "Node", "lab-gpu-2")
    assert node is not None
    cluster.delete("v1", "Node", "lab-gpu-2")
    try:
        assert project.changes() == {"blue-cluster-queue": "update", "red-cluster-queue": "update"}
    finally:
        metadata = {key: node["metadata"][key] for key in ("name", "labels", "annotations")}
        cluster.create({**node, "metadata": metadata})
        eventually("lab-gpu-2 is back", lambda: is_ready(cluster, "lab-gpu-2"))
    project.unchanged()
