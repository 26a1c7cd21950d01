"""OpenShift AI's operators on the local OpenShift: OLM installs them from a catalog, and they run a team's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator.cluster import seeds
from emulator.cluster.api import Api
from emulator.cluster.credentials import read_kubeconfig
from emulator.paths import Paths
from tests.local.environment import (
    ROOT,
    Cluster,
    Project,
    eventually,
    gang,
    local_environment,
    mirrored,
    stack_settings,
)

pytestmark = pytest.mark.emulated("its operators are built by the local environment")

OPERATOR, APPLICATIONS = "redhat-ods-operator", "redhat-ods-applications"
OLM, OLM_ALPHA = "operators.coreos.com/v1", "operators.coreos.com/v1alpha1"
CRD, DSC = "apiextensions.k8s.io/v1", "datasciencecluster.opendatahub.io/v1"
KUEUE = "app.opendatahub.io/kueue"
JOB_KINDS = ("appwrappers.workload.codeflare.dev", "pytorchjobs.kubeflow.org", "rayclusters.ray.io", "rayjobs.ray.io")


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """A local OpenShift with OperatorHub and the nodes of the tutorial."""
    with local_environment(openshift=True, operator_hub=True) as paths:
        seeds.plant(Api(read_kubeconfig(paths.kubeconfig.read_text())), ROOT / "local" / "seeds" / "openshift.yaml")
        yield paths


@pytest.fixture(scope="module")
def cluster(paths: Paths) -> Cluster:
    return Cluster(paths.kubeconfig)


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The example with OpenShift AI's operators, installed."""
    project = Project(tmp_path_factory.mktemp("openshift"), paths, "openshift")
    settings = stack_settings("openshift")
    del settings["queueing"], settings["samples"]
    chosen = {"operators": "openshift-ai", "version": "2.16"}
    tenancy = {"protect": False}
    project.configure({**settings, "openshift": chosen, "tenancy": tenancy, **mirrored(project.mirror)})
    project.up()
    return project


def definition(cluster: Cluster, name: str) -> str:
    """Return when something was defined."""
    return str(cluster.existing(CRD, "CustomResourceDefinition", name)["metadata"]["creationTimestamp"])


def test_olm_has_installed_the_version_that_was_approved(project: Project, cluster: Cluster) -> None:
    version = cluster.existing(OLM_ALPHA, "ClusterServiceVersion", "rhods-operator.2.16.0", OPERATOR)
    assert version["status"]["phase"] == "Succeeded"
    plans = cluster.list(OLM_ALPHA, "InstallPlan", OPERATOR)  # OLM makes a second one for the same version at times
    assert {plan["spec"]["approval"] for plan in plans} == {"Manual"}
    assert [plan for plan in plans if plan["spec"]["approved"]]
    assert {name for plan in plans for name in plan["spec"]["clusterServiceVersionNames"]} == {"rhods-operator.2.16.0"}
    (datascience,) = cluster.list(DSC, "DataScienceCluster")
    assert (datascience["metadata"]["name"], datascience["status"]["phase"]) == ("mlbatch-dsc", "Ready")


def test_its_operators_are_processes_with_what_mlbatch_changes(project: Project, cluster: Cluster) -> None:
    found = {each["metadata"]["name"]: each for each in cluster.list("apps/v1", "Deployment", APPLICATIONS)}
    assert found.keys() == {
        "codeflare-operator-manager",
        "kuberay-operator",
        "kueue-controller-manager",
        "training-operator",
    }
    for name, each in found.items():
        assert each["status"]["availableReplicas"] == 1, name
        assert each["spec"]["template"]["spec"]["priorityClassName"] == "system-node-critical", name
    for pod in cluster.list("v1", "Pod", APPLICATIONS):
        assert "emulator/simulated" not in (pod["metadata"].get("annotations") or {})
    config = cluster.existing("v1", "ConfigMap", "kueue-manager-config", APPLICATIONS)["data"]
    assert "externalFrameworks:" in config["controller_manager_config.yaml"]


def test_kueue_that_came_before_rays_definitions_was_started_anew(project: Project, cluster: Cluster) -> None:
    """OpenShift AI makes Kueue first: what seed 003 (10.2) has somebody delete by hand."""
    defined = max(definition(cluster, name) for name in JOB_KINDS)
    deployed = cluster.existing("apps/v1", "Deployment", "kueue-controller-manager", APPLICATIONS)
    assert deployed["metadata"]["creationTimestamp"] < defined, "the wrong order"
    (pod,) = cluster.list("v1", "Pod", APPLICATIONS, label_selector=KUEUE)
    assert pod["metadata"]["creationTimestamp"] > defined


def test_a_job_of_a_team_runs_and_a_ray_cluster_waits_in_its_queue(project: Project, cluster: Cluster) -> None:
    """The AppWrapper here has no configuration of the stack's, which names a queue for jobs that name none."""
    queue = {"kueue.x-k8s.io/queue-name": "default-queue"}
    cluster.create(gang("train", "blue", pods=2, gpus=4, labels=queue))
    eventually(
        "the pods of the job run",
        lambda: cluster.list("v1", "Pod", "blue", label_selector="workload.codeflare.dev/appwrapper=train"),
        lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running", "Running"],
        seconds=120,
    )
    cluster.create(ray_cluster("ray", gpus=100))
    workload = eventually("its workload", lambda: workloads(cluster, "RayCluster"))[0]
    assert workload["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert cluster.existing("ray.io/v1", "RayCluster", "ray", "blue")["spec"]["suspend"] is True


def workloads(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    return [
        each
        for each in cluster.list("kueue.x-k8s.io/v1beta1", "Workload", "blue")
        if each["metadata"]["ownerReferences"][0]["kind"] == kind
    ]


def ray_cluster(name: str, gpus: int) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "ray", "image": "docker.io/rayproject/ray:2.35.0", "resources": resources}
    group = {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "blue", "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}},
        "spec": {"headGroupSpec": group},
    }


def test_a_second_preview_is_empty(project: Project) -> None:
    project.unchanged()


def test_destroy_leaves_what_olm_brought_and_nothing_else(project: Project, cluster: Cluster) -> None:
    project.destroy()
    assert project.resources() == [] or {each["type"] for each in project.resources()} == {"pulumi:pulumi:Stack"}
    for namespace in (OPERATOR, APPLICATIONS, "blue"):
        eventually(f"{namespace} goes", lambda name=namespace: cluster.get("v1", "Namespace", name) is None)
    assert cluster.list(OLM_ALPHA, "ClusterServiceVersion") == []
    left = {each["metadata"]["name"] for each in cluster.list(CRD, "CustomResourceDefinition")}
    assert {*JOB_KINDS, "datascienceclusters.datasciencecluster.opendatahub.io", "workloads.kueue.x-k8s.io"} <= left
    assert cluster.get("v1", "Namespace", "redhat-ods-monitoring") is not None
