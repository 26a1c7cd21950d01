"""OpenShift AI 3 on the local OpenShift: a stack installs it, a member's job runs, and `destroy` removes the stack.

The three operators are stubs (`emulator/openshift/red_hat`). OLM, Kueue, KubeRay, JobSet and Trainer are real.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cli.app import main
from components import names
from components.openshift_ai import version_3
from emulator.paths import Paths
from runner.files import write_private
from tests.local.environment import (
    Cluster,
    Project,
    eventually,
    gang,
    local_environment,
    mirrored,
    stack_settings,
)
from tests.local.member import as_member
from tests.local.test_member_train_jobs import train_job
from tests.local.test_platform import accepted

pytestmark = pytest.mark.emulated("its operators are stubs of the local environment")

DSC, KUEUE = "datasciencecluster.opendatahub.io/v2", "kueue.openshift.io/v1"
OLM_ALPHA, TRAINER = "operators.coreos.com/v1alpha1", "trainer.kubeflow.org/v1alpha1"
NETWORK = "networking.k8s.io/v1"
OPERATORS = {
    "cert-manager-operator": "cert-manager-operator.v1.19.1",
    "openshift-kueue-operator": "kueue-operator.v1.4.1",
    "redhat-ods-operator": "rhods-operator.3.4.3",
}


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a local OpenShift with OperatorHub and the tutorial's nodes."""
    with local_environment(openshift=True, operator_hub=True, stack="openshift") as paths:
        yield paths


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Install the example with OpenShift AI 3 as kube:admin."""
    project = Project(tmp_path_factory.mktemp("openshift"), paths, "openshift")
    project.engine = project.attached_to(replace(project.engine.environment, kubeconfig=as_kube_admin(paths)))
    settings = stack_settings("openshift")
    del settings["queueing"]["kuberay"]
    settings["queueing"]["trainer"] = {"enabled": True}
    chosen = {"operators": "openshift-ai", "version": "3.4"}
    project.configure({**settings, "openshift": chosen, "tenancy": {"protect": False}, **mirrored(project.mirror)})
    project.up()
    return project


def as_kube_admin(paths: Paths) -> Path:
    """Return a kubeconfig of the administrator that OpenShift's installer creates, with a uid longer than a label."""
    document = yaml.safe_load(paths.kubeconfig.read_text())
    groups = ["system:cluster-admins", "system:authenticated"]
    document["users"][0]["user"] |= {"as": "kube:admin", "as-uid": 86 * "a", "as-groups": groups}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cluster-admins"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": groups[0]}],
    }
    Cluster(paths.kubeconfig).create(binding)
    file = paths.state / "kube-admin.yaml"
    write_private(file, yaml.safe_dump(document))
    return file


def test_olm_has_installed_the_operators_and_openshift_ai_is_ready(project: Project, cluster: Cluster) -> None:
    for namespace, csv in OPERATORS.items():
        version = cluster.existing(OLM_ALPHA, "ClusterServiceVersion", csv, namespace)
        assert version["status"]["phase"] == "Succeeded", csv
    assert cluster.existing(DSC, "DataScienceCluster", "mlbatch-dsc")["status"]["phase"] == "Ready"
    conditions = cluster.existing(KUEUE, "Kueue", "cluster")["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {
        "Available": "True",
        "Progressing": "False",
        "Degraded": "False",
    }


def test_a_members_job_is_admitted_through_the_teams_queue(project: Project, paths: Paths, cluster: Cluster) -> None:
    as_member(paths, "alice").create(gang("train", "blue", pods=2, gpus=2))
    for name in ("sample-gang", "train"):
        label = f"workload.codeflare.dev/appwrapper={name}"
        eventually(
            f"the pods of {name} run",
            lambda label=label: cluster.list("v1", "Pod", "blue", label_selector=label),
            lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running", "Running"],
        )
    for workload in cluster.list(names.KUEUE_API, "Workload", "blue"):
        assert workload["status"]["admission"]["clusterQueue"] == "blue-cluster-queue"
    cluster.delete("workload.codeflare.dev/v1beta2", "AppWrapper", "train", "blue")
    eventually("its workload goes", lambda: len(cluster.list(names.KUEUE_API, "Workload", "blue")) == 1)


def test_a_members_train_job_runs_with_the_platforms_scheduler(
    project: Project, paths: Paths, cluster: Cluster
) -> None:
    """Kueue rejects TrainJobs as of an "unsupported runtime" until it has noticed Trainer's kinds."""
    job = train_job("tune", gpus=1, namespace="blue")
    alice = as_member(paths, "alice")
    eventually("Kueue knows the runtimes", lambda: accepted(alice, job))
    (pod,) = eventually(
        "its pod runs",
        lambda: cluster.list("v1", "Pod", "blue", label_selector="jobset.sigs.k8s.io/jobset-name=tune"),
        lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running"],
    )
    assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    cluster.delete(TRAINER, "TrainJob", "tune", "blue")
    eventually("its workload goes", lambda: len(cluster.list(names.KUEUE_API, "Workload", "blue")) == 1)


def test_kuberay_does_not_open_a_teams_network(project: Project, cluster: Cluster) -> None:
    """The stub writes its NetworkPolicies in the order of the namespaces."""
    amounts = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "head", "image": "ray", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"suspend": True, "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}}}
    for namespace in ("blue", "default"):
        metadata = {"name": "open", "namespace": namespace}
        ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}
        eventually("the team's quotas count Ray clusters", lambda ray=ray: accepted(cluster, ray))
    eventually("it opens another network", lambda: cluster.get(NETWORK, "NetworkPolicy", "open-head", "default"))
    assert cluster.get(NETWORK, "NetworkPolicy", "open-head", "blue") is None
    for namespace in ("blue", "default"):
        cluster.delete("ray.io/v1", "RayCluster", "open", namespace)


def test_no_attack_goes_through(project: Project, paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", "--kubeconfig", str(paths.kubeconfig)]) == 0, capsys.readouterr()


def test_a_second_preview_is_empty(project: Project) -> None:
    project.unchanged()


def test_refresh_finds_a_manual_change_and_up_reverts_it(project: Project, cluster: Cluster) -> None:
    changed = {"spec": {"config": {"workloadManagement": {"labelPolicy": "QueueName"}}}}
    cluster.patch(KUEUE, "Kueue", "cluster", changed)
    assert '"QueueName"' in project.drift()
    project.up()
    config = cluster.existing(KUEUE, "Kueue", "cluster")["spec"]["config"]
    assert config == version_3.kueue()["spec"]["config"]


def test_destroy_removes_all_of_the_stack(project: Project, cluster: Cluster) -> None:
    project.destroy()
    assert {each["type"] for each in project.resources()} <= {"pulumi:pulumi:Stack"}
    for namespace in (*OPERATORS, "redhat-ods-applications", names.SYSTEM_NAMESPACE, "blue", "red"):
        eventually(f"{namespace} goes", lambda name=namespace: cluster.get("v1", "Namespace", name) is None)
    for api, kind in ((KUEUE, "Kueue"), (DSC, "DataScienceCluster"), (names.KUEUE_API, "ClusterQueue")):
        assert cluster.list(api, kind) == [], kind
    left = {each["metadata"]["name"] for each in cluster.list(names.KUEUE_API, "ResourceFlavor")}
    assert left == {"default-flavor", "nvidia-gpu-flavor"}, "OpenShift AI's own stay"
    for each in left:
        cluster.patch(names.KUEUE_API, "ResourceFlavor", each, {"metadata": {"finalizers": None}})
    definition = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "resourceflavors.kueue.x-k8s.io")
    cluster.delete(*definition)
    eventually("the commands of the page delete their definition", lambda: cluster.get(*definition) is None)
