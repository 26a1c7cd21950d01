"""OpenShift AI's operators on the local OpenShift: OLM installs them from a catalog, and they run a team's jobs."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from components import catalogue, names
from components.catalogue import Image
from components.nodes import certified_gpu_operator
from components.openshift_ai import installation
from components.workbench import queue, ray_cluster, ray_job
from components.workbench.queue import QueueArgs
from components.workbench.ray_cluster import DEMOS, Demo, RayClusterArgs
from components.workbench.ray_job import RayJobsArgs
from emulator.cluster import seeds
from emulator.cluster.api import Api
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.devices import PREFIX
from emulator.paths import Paths
from runner.environment import inherited
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
from tests.local.member import as_member, dry_run, refused

pytestmark = pytest.mark.emulated("its operators are built by the local environment")

OPERATOR, APPLICATIONS = "redhat-ods-operator", "redhat-ods-applications"
OLM, OLM_ALPHA = "operators.coreos.com/v1", "operators.coreos.com/v1alpha1"
CRD, DSC = "apiextensions.k8s.io/v1", "datasciencecluster.opendatahub.io/v1"
KUEUE = "app.opendatahub.io/kueue"
GPU_OPERATOR = "nvidia-gpu-operator"
DISCOVERED = {"feature.node.kubernetes.io/pci-10de.present": "true"}
JOB_KINDS = ("appwrappers.workload.codeflare.dev", "pytorchjobs.kubeflow.org", "rayclusters.ray.io", "rayjobs.ray.io")


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a local OpenShift with OperatorHub and the tutorial's nodes, in their state before the GPU operator."""
    with local_environment(openshift=True, operator_hub=True) as paths:
        file = paths.state / "seeds.yaml"
        tutorials = yaml.safe_load_all((ROOT / "local" / "seeds" / "openshift.yaml").read_text())
        file.write_text(yaml.safe_dump_all([bare(each) for each in tutorials]))
        seeds.plant(Api(read_kubeconfig(paths.kubeconfig.read_text())), file)
        yield paths


def bare(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node with GPUs that it does not offer yet."""
    labels, status = node["metadata"]["labels"], node.get("status") or {}
    if labels.pop("nvidia.com/gpu.present", None):
        gpus, product = labels.pop("nvidia.com/gpu.count"), labels.pop("nvidia.com/gpu.product")
        node["metadata"]["annotations"] |= {f"{PREFIX}gpus": gpus, f"{PREFIX}gpu-product": product}
        for part in status.values():
            del part["nvidia.com/gpu"]
    return node


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Install the example with OpenShift AI's operators and the GPU operator."""
    project = Project(tmp_path_factory.mktemp("openshift"), paths, "openshift")
    settings = stack_settings("openshift")
    del settings["queueing"], settings["samples"]
    chosen = {"operators": "openshift-ai", "version": "2.16"}
    pool = {"nodeSelector": DISCOVERED, "gpusPerNode": 8, "cpu": 224, "memory": "1900Gi"}
    others = {"gpu": {"operator": True}, "cluster": {"pool": pool}, "tenancy": {"protect": False}}
    project.configure({**settings, "openshift": chosen, **others, **mirrored(project.mirror)})
    project.up()
    return project


def definition(cluster: Cluster, name: str) -> str:
    """Return the creation time of a definition."""
    return str(cluster.existing(CRD, "CustomResourceDefinition", name)["metadata"]["creationTimestamp"])


def test_olm_has_installed_the_version_that_was_approved(project: Project, cluster: Cluster) -> None:
    version = cluster.existing(OLM_ALPHA, "ClusterServiceVersion", "rhods-operator.2.16.0", OPERATOR)
    assert version["status"]["phase"] == "Succeeded"
    plans = cluster.list(OLM_ALPHA, "InstallPlan", OPERATOR)  # OLM sometimes creates a second one for the same version
    assert {plan["spec"]["approval"] for plan in plans} == {"Manual"}
    assert [plan for plan in plans if plan["spec"]["approved"]]
    assert {name for plan in plans for name in plan["spec"]["clusterServiceVersionNames"]} == {"rhods-operator.2.16.0"}
    (datascience,) = cluster.list(DSC, "DataScienceCluster")
    assert (datascience["metadata"]["name"], datascience["status"]["phase"]) == ("mlbatch-dsc", "Ready")


def test_olm_has_installed_the_gpu_operator_and_nodes_offer_their_gpus(project: Project, cluster: Cluster) -> None:
    """The operator's pod is simulated. OLM's work, the admission of the pod, and the wait for the nodes are real."""
    version = cluster.existing(OLM_ALPHA, "ClusterServiceVersion", "gpu-operator-certified.v26.3.3", GPU_OPERATOR)
    assert version["status"]["phase"] == "Succeeded"
    (pod,) = cluster.list("v1", "Pod", GPU_OPERATOR, label_selector="app=gpu-operator")
    assert pod["metadata"]["annotations"]["openshift.io/scc"] == "hostmount-anyuid"
    assert cluster.existing("nvidia.com/v1", "ClusterPolicy", "gpu-cluster-policy")["status"]["state"] == "ready"
    nodes = cluster.list("v1", "Node", label_selector="nvidia.com/gpu.present=true")
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8", "8"]


def test_its_operators_are_processes_with_what_mlbatch_changes(project: Project, cluster: Cluster) -> None:
    # The stack has waited for the definitions and for a pod of Kueue. Deployments report pods a moment later.
    found = eventually(
        "the operators are available",
        lambda: {each["metadata"]["name"]: each for each in cluster.list("apps/v1", "Deployment", APPLICATIONS)},
        lambda found: all((each.get("status") or {}).get("availableReplicas") == 1 for each in found.values()),
    )
    assert found.keys() == {
        "codeflare-operator-manager",
        "kuberay-operator",
        "kueue-controller-manager",
        "training-operator",
    }
    for name, each in found.items():
        assert each["spec"]["template"]["spec"]["priorityClassName"] == "system-node-critical", name
    for pod in cluster.list("v1", "Pod", APPLICATIONS):
        assert "emulator/simulated" not in (pod["metadata"].get("annotations") or {})
    config = cluster.existing("v1", "ConfigMap", "kueue-manager-config", APPLICATIONS)["data"]
    assert "externalFrameworks:" in config["controller_manager_config.yaml"]


def test_kueue_that_started_before_rays_definitions_was_restarted(project: Project, cluster: Cluster) -> None:
    """OpenShift AI creates Kueue first. Seed 003 (10.2) deletes its pod manually."""
    defined = max(definition(cluster, name) for name in JOB_KINDS)
    deployed = cluster.existing("apps/v1", "Deployment", "kueue-controller-manager", APPLICATIONS)
    assert deployed["metadata"]["creationTimestamp"] <= defined, "the wrong order"  # the times are in whole seconds
    (pod,) = cluster.list("v1", "Pod", APPLICATIONS, label_selector=KUEUE)
    assert pod["metadata"]["creationTimestamp"] > defined


def test_a_job_of_a_team_runs_and_a_ray_cluster_waits_in_its_queue(project: Project, cluster: Cluster) -> None:
    """The AppWrapper here does not have the stack's configuration with a default queue, so jobs name their queue."""
    queue = {"kueue.x-k8s.io/queue-name": "default-queue"}
    cluster.create(gang("train", "blue", pods=2, gpus=4, labels=queue))
    eventually(
        "the pods of the job run",
        lambda: cluster.list("v1", "Pod", "blue", label_selector="workload.codeflare.dev/appwrapper=train"),
        lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running", "Running"],
        seconds=120,
    )
    cluster.create(large_cluster("ray", gpus=100))
    workload = eventually("its workload", lambda: workloads(cluster, "RayCluster"))[0]
    assert workload["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert cluster.existing("ray.io/v1", "RayCluster", "ray", "blue")["spec"]["suspend"] is True


def test_a_member_has_no_ray_job_submitted_by_a_pod_that_this_kueue_does_not_count(
    project: Project, paths: Paths
) -> None:
    alice = as_member(paths, "alice")
    job = {**large_cluster("submitted", gpus=1), "kind": "RayJob"}
    job["spec"] = {"entrypoint": "true", "shutdownAfterJobFinishes": True, "rayClusterSpec": job["spec"]}
    said = refused(dry_run, alice, job)
    assert "set submissionMode to HTTPMode, and leave submitterPodTemplate out" in said
    job["spec"]["submissionMode"] = "HTTPMode"
    dry_run(alice, job)


def workloads(cluster: Cluster, kind: str, namespace: str = "blue") -> list[dict[str, Any]]:
    return [
        each
        for each in cluster.list("kueue.x-k8s.io/v1beta1", "Workload", namespace)
        if each["metadata"]["ownerReferences"][0]["kind"] == kind
    ]


def large_cluster(name: str, gpus: int) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "ray", "image": catalogue.RAY.reference, "resources": resources}
    group = {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "blue", "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}},
        "spec": {"headGroupSpec": group},
    }


@pytest.fixture
def sandbox(project: Project, cluster: Cluster) -> Iterator[QueueArgs]:
    """Create the workbench's project and queue with the guide's quota, like the stack."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sandbox"}})
    amounts, api = {"cpu": "9", "memory": "36Gi", "nvidia.com/gpu": "5"}, names.KUEUE_API_BEFORE
    args = QueueArgs(namespace="sandbox", amounts=amounts, kueue_api=api)
    (flavor,) = cluster.list(api, "ResourceFlavor")
    cluster.create(queue.cluster_queue(args, flavor["metadata"]["name"]))
    cluster.create(queue.local_queue(args, args.namespace, queue.CLUSTER_QUEUE))
    yield args
    cluster.delete("v1", "Namespace", args.namespace)
    cluster.delete(api, "ClusterQueue", queue.CLUSTER_QUEUE)
    eventually("the queue goes", lambda: cluster.get(api, "ClusterQueue", queue.CLUSTER_QUEUE) is None)


def test_kueue_admits_each_demo_whole(sandbox: QueueArgs, cluster: Cluster) -> None:
    """Seed 003, steps 0 to 9 and its four notebooks, as the notebooks' clusters and as jobs."""
    for demo in DEMOS.values():
        args = rays([demo], catalogue.RAY)
        made = ray_cluster.ray_cluster(demo, sandbox.namespace, queue.LOCAL_QUEUE, args)
        admitted_whole(cluster, sandbox.namespace, demo, made)
    demos = [DEMOS[name] for name in ray_job.PROGRAMS]
    jobs = RayJobsArgs(clusters=rays(demos, catalogue.RAY_TRAIN), packages=catalogue.DEMO_PACKAGES)
    for demo in demos:
        program, job = ray_job.documents(demo, sandbox.namespace, queue.LOCAL_QUEUE, "aws-connection-minio", jobs)
        cluster.create(program)
        admitted_whole(cluster, sandbox.namespace, demo, job)


def rays(demos: Sequence[Demo], image: Image) -> RayClusterArgs:
    return RayClusterArgs(demos=demos, image=image.reference, version=image.tag.partition("-")[0], user=None)


def admitted_whole(cluster: Cluster, namespace: str, demo: Demo, made: dict[str, Any]) -> None:
    """Check that a demo is admitted with all its pods, which are then created and deleted."""
    cluster.create(made)
    workload = eventually(
        f"{demo.cluster} is admitted", lambda: workloads(cluster, made["kind"], namespace), are_admitted, seconds=120
    )[0]
    assert [group["count"] for group in workload["spec"]["podSets"]] == [1, demo.workers]
    usage = [group["resourceUsage"] for group in workload["status"]["admission"]["podSetAssignments"]]
    gpus = sum(int(amounts.get("nvidia.com/gpu", "0")) for amounts in usage)
    assert gpus == demo.head.gpus + demo.workers * demo.worker.gpus
    eventually(
        "its pods are made",
        lambda: cluster.list("v1", "Pod", namespace, label_selector="ray.io/is-ray-node=yes"),
        lambda pods: len(pods) == 1 + demo.workers,
        seconds=120,
    )
    cluster.delete(made["apiVersion"], made["kind"], demo.cluster, namespace)
    eventually("its workload goes", lambda: workloads(cluster, made["kind"], namespace) == [], seconds=120)
    eventually(
        "its pods go",
        lambda: cluster.list("v1", "Pod", namespace, label_selector="ray.io/is-ray-node=yes") == [],
        seconds=120,
    )


def are_admitted(found: list[dict[str, Any]]) -> bool:
    return bool(found) and all("admission" in (each.get("status") or {}) for each in found)


def test_a_second_preview_is_empty(project: Project) -> None:
    project.unchanged()


def test_another_version_is_rejected(project: Project) -> None:
    """The Subscription's settings would be those of another version."""
    said = project.previewed_with(openshift={"operators": "openshift-ai", "version": "2.25"})
    assert "a stack has installed OpenShift AI 2.16 on this cluster" in said


def test_the_stacks_commands_find_what_olm_leaves(project: Project, paths: Paths, cluster: Cluster) -> None:
    (stack,) = [each for each in project.resources() if each["type"] == "pulumi:pulumi:Stack"]
    told = stack["outputs"]["leftByOlm"]
    project.destroy()
    assert {each["type"] for each in project.resources()} <= {"pulumi:pulumi:Stack"}
    for namespace in (OPERATOR, APPLICATIONS, GPU_OPERATOR, "blue"):
        eventually(f"{namespace} goes", lambda name=namespace: cluster.get("v1", "Namespace", name) is None)
    # OLM deletes the copies of a version in other namespaces after the version itself.
    eventually("the last copy goes", lambda: cluster.list(OLM_ALPHA, "ClusterServiceVersion"), lambda left: not left)
    assert told == [*installation.LEFT, *certified_gpu_operator.LEFT]
    for command in told:
        assert found_by(command, paths), command
    left = {each["metadata"]["name"] for each in cluster.list(CRD, "CustomResourceDefinition")}
    assert {*JOB_KINDS, "datascienceclusters.datasciencecluster.opendatahub.io", "workloads.kueue.x-k8s.io"} <= left


def found_by(command: str, paths: Paths) -> str:
    """Return the output of a command; `oc get` is kubectl's."""
    shell = ["sh", "-c", command.replace("oc ", "kubectl ", 1)]
    programs = os.pathsep.join([str(paths.bin), os.environ.get("PATH", os.defpath)])
    environment = {**inherited(), "KUBECONFIG": str(paths.kubeconfig), "PATH": programs}
    return subprocess.run(shell, env=environment, capture_output=True, text=True, check=True).stdout
