"""KubeRay and Kubeflow's training operator on the local OpenShift: the real programs create real pods."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from emulator.paths import Paths
from emulator.toolchain import KUBERNETES_1_34, KUBERNETES_1_36, Toolchain
from runner.environment import inherited
from tests.local.environment import Cluster, eventually, local_environment
from tests.local.member import refused

pytestmark = pytest.mark.emulated("its operators are built by the local environment")

RAY, KUBEFLOW = "ray.io/v1", "kubeflow.org/v1"
SCC = "openshift.io/scc"
KUSTOMIZATIONS = {
    "github.com/ray-project/kuberay/ray-operator": (KUBERNETES_1_34, "config/default"),
    "github.com/kubeflow/training-operator": (KUBERNETES_1_36, "manifests/overlays/standalone"),
}
"""The tools that pin upstream's module, and the folder with upstream's manifests."""


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a local OpenShift with both operators from upstream's manifests."""
    with local_environment(openshift=True) as paths:
        toolchain = Toolchain(paths)
        for module, (tools, folder) in KUSTOMIZATIONS.items():
            manifest = kubectl(paths, "kustomize", str(toolchain.module_folder(tools, module) / folder))
            kubectl(paths, "apply", "--server-side", "-f", "-", text=manifest)
        yield paths


@pytest.fixture(scope="module")
def cluster(paths: Paths) -> Cluster:
    cluster = Cluster(paths.kubeconfig)
    for name, namespace in (("kuberay-operator", "default"), ("training-operator", "kubeflow")):
        eventually(f"{name} is available", lambda name=name, namespace=namespace: available(cluster, name, namespace))
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}})
    return cluster


def kubectl(paths: Paths, *arguments: str, text: str = "") -> str:
    environment = {**inherited(), "KUBECONFIG": str(paths.kubeconfig)}
    program = shutil.which("kubectl", path=os.pathsep.join([str(paths.bin), os.environ.get("PATH", os.defpath)]))
    command = [program or "kubectl", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def available(cluster: Cluster, name: str, namespace: str) -> bool:
    found = cluster.existing("apps/v1", "Deployment", name, namespace)
    return bool((found.get("status") or {}).get("availableReplicas"))


def pods(cluster: Cluster, selector: str) -> list[dict[str, Any]]:
    return cluster.list("v1", "Pod", "blue", label_selector=selector)


def template(name: str, image: str) -> Mapping[str, Any]:
    return {"spec": {"containers": [{"name": name, "image": image}]}}


def test_each_operator_is_a_process_under_restricted_v2(cluster: Cluster) -> None:
    for namespace, selector in (
        ("default", "app.kubernetes.io/name=kuberay"),
        ("kubeflow", "control-plane=kubeflow-training-operator"),
    ):
        (pod,) = cluster.list("v1", "Pod", namespace, label_selector=selector)
        assert pod["metadata"]["annotations"][SCC] == "restricted-v2"
        assert "emulator/simulated" not in pod["metadata"]["annotations"]
        (status,) = pod["status"]["containerStatuses"]
        assert status["ready"]


def test_kuberay_creates_the_head_and_the_workers_of_a_cluster(cluster: Cluster) -> None:
    ray = {"apiVersion": RAY, "kind": "RayCluster", "metadata": {"name": "raytest", "namespace": "blue"}}
    image = "docker.io/rayproject/ray:2.49.2"
    head = {"rayStartParams": {}, "template": template("ray-head", image)}
    workers = {"groupName": "small", "replicas": 2, "rayStartParams": {}, "template": template("ray-worker", image)}
    cluster.create({**ray, "spec": {"headGroupSpec": head, "workerGroupSpecs": [workers]}})
    for kind, count in (("head", 1), ("worker", 2)):
        selector = f"ray.io/cluster=raytest,ray.io/node-type={kind}"
        found = eventually(
            f"{kind} of the Ray cluster",
            lambda selector=selector: pods(cluster, selector),
            lambda found, count=count: len(found) == count,
        )
        assert {pod["metadata"]["annotations"][SCC] for pod in found} == {"restricted-v2"}
    cluster.delete(RAY, "RayCluster", "raytest", "blue")
    eventually("its pods go", lambda: pods(cluster, "ray.io/cluster=raytest"), lambda found: not found)


def test_the_training_operator_creates_the_pods_of_a_job_and_its_webhook_checks_it(cluster: Cluster) -> None:
    job = {"apiVersion": KUBEFLOW, "kind": "PyTorchJob", "metadata": {"name": "train", "namespace": "blue"}}
    replica = {"replicas": 1, "template": template("pytorch", "docker.io/library/busybox:1.37.0")}
    spec = {"pytorchReplicaSpecs": {"Master": replica, "Worker": {**replica, "replicas": 2}}}
    wrong = {"pytorchReplicaSpecs": {"Master": {**replica, "template": template("main", "busybox")}}}
    assert "must have at least one container with name pytorch" in refused(cluster.create, {**job, "spec": wrong})
    cluster.create({**job, "spec": spec})
    found = eventually(
        "the job's pods",
        lambda: pods(cluster, "training.kubeflow.org/job-name=train"),
        lambda found: len(found) == 3,
    )
    assert {pod["metadata"]["annotations"][SCC] for pod in found} == {"restricted-v2"}
    cluster.delete(KUBEFLOW, "PyTorchJob", "train", "blue")
    eventually("its pods go", lambda: pods(cluster, "training.kubeflow.org/job-name=train"), lambda found: not found)
