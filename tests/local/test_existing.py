"""The platform on a cluster with existing nodes: facts that it reads from them, and their effects."""

import pytest

from components.job_kinds import RAY_CLUSTER, RAY_JOB
from emulator.paths import Paths
from tests.local.environment import (
    Cluster,
    Project,
    eventually,
    existing_settings,
    is_ready,
    machines,
)
from tests.local.jobs import pods_of, running
from tests.local.member import as_member
from tests.local.standing import Standing

KUEUE = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def project(standing: Standing, site_nodes: list[str]) -> Project:
    return standing.up("existing", existing_settings)


def quotas(cluster: Cluster) -> dict[str, str]:
    found = {}
    for queue in cluster.list(KUEUE, "ClusterQueue"):
        resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        found[queue["metadata"]["name"]] = next(item["nominalQuota"] for item in resources if item["name"] == GPU)
    return found


def test_quotas_follow_the_existing_nodes(project: Project, cluster: Cluster) -> None:
    """test_member_nodes.py has the second preview of this stack."""
    assert quotas(cluster) == {"slack-cluster-queue": "8", "blue-cluster-queue": "8", "red-cluster-queue": "8"}


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


@pytest.mark.parametrize("plural", ["appwrappers", RAY_CLUSTER.plural, RAY_JOB.plural])
def test_members_create_ray_kinds_only_in_an_appwrapper(plural: str, project: Project, paths: Paths) -> None:
    alice, reviews = as_member(paths, "alice"), "authorization.k8s.io/v1"
    group = "workload.codeflare.dev" if plural == "appwrappers" else "ray.io"
    asked = {"group": group, "resource": plural, "verb": "create", "namespace": "blue"}
    review = {"apiVersion": reviews, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
    answer = alice.client.create(alice.kind(reviews, review["kind"]), body=review)
    assert answer.status.allowed is (plural == "appwrappers")


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
