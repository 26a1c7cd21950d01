"""A new cluster's seeds are applied once and completely, before the program runs."""

from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from emulator.cluster.api import Api, ApiError
from emulator.cluster.layout import Layout
from emulator.cluster.provisioners import provisioners
from emulator.cluster.seeds import SeedError, plant
from emulator.paths import Paths
from stacks.targets.cpouta.target import KIND_CLASS

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
KINDS = {
    "/api/v1": [
        {"name": "nodes", "kind": "Node", "namespaced": False},
        {"name": "nodes/status", "kind": "Node", "namespaced": False},
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
    ],
    "/apis/storage.k8s.io/v1": [{"name": "storageclasses", "kind": "StorageClass", "namespaced": False}],
    "/apis/scheduling.k8s.io/v1": [{"name": "priorityclasses", "kind": "PriorityClass", "namespaced": False}],
}
MARKER = "/api/v1/namespaces/kube-system/configmaps/local-seeds"
NODE = "{apiVersion: v1, kind: Node, metadata: {name: lab-0}}"
CLASS = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}}"
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: site, namespace: kube-public}}"


class Server:
    """An API server that stores applied objects. Its nodes are Ready at once."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.applied: dict[str, dict[str, Any]] = {}
        self.refuses = ""

    def get(self, path: str) -> dict[str, Any]:
        if path in KINDS:
            return {"resources": KINDS[path]}
        if path not in self.objects:
            raise ApiError(404, f"GET {path}: 404 not found")
        return self.objects[path]

    def apply(self, path: str, body: dict[str, Any], manager: str) -> None:
        if self.refuses and self.refuses in path:
            raise ApiError(422, f"PATCH {path}: 422 invalid")
        self.applied[path] = body
        self.objects[path] = {**body, "status": READY}


def seed(folder: Path, *documents: str) -> Path:
    file = folder / "lab.yaml"
    file.write_text("---\n".join(f"{document}\n" for document in documents))
    return file


def test_each_object_is_applied_at_the_path_of_its_kind_and_the_cluster_is_marked_last(tmp_path: Path) -> None:
    server = Server()
    assert plant(cast(Api, server), seed(tmp_path, NODE, CLASS, MAP)) == 3
    assert list(server.objects) == [
        "/api/v1/nodes/lab-0",
        "/apis/scheduling.k8s.io/v1/priorityclasses/low",
        "/api/v1/namespaces/kube-public/configmaps/site",
        MARKER,
    ]


def test_a_marked_cluster_is_not_changed_for_any_file(tmp_path: Path) -> None:
    server = Server()
    plant(cast(Api, server), seed(tmp_path, NODE))
    del server.objects["/api/v1/nodes/lab-0"]
    assert plant(cast(Api, server), seed(tmp_path, NODE, CLASS)) == 0
    assert list(server.objects) == [MARKER]


def test_a_stack_without_a_seed_leaves_no_mark(tmp_path: Path) -> None:
    server = Server()
    assert plant(cast(Api, server), tmp_path / "none.yaml") == 0
    assert server.objects == {}


def test_a_stack_without_a_seed_of_its_own_gets_the_nodes_and_classes_of_its_settings(tmp_path: Path) -> None:
    gpu = """\
        {apiVersion: v1, kind: Node,
         metadata: {name: lab-0, labels: {pool: gpu}, annotations: {kwok.x-k8s.io/node: fake}},
         status: {allocatable: {nvidia.com/gpu: "8"}, capacity: {nvidia.com/gpu: "8"}}}"""
    cluster = {
        "pool": {"nodeSelector": {"group": "gpu"}, "rdma": {"perNode": 4}},
        "morePools": [{"nodeSelector": {"pool": "gpu"}}],
        "system": {"nodeSelector": {"group": "system"}},
        "storageClasses": {"files": "efs", "logs": "efs"},
    }
    server = Server()
    assert plant(cast(Api, server), seed(tmp_path, gpu), cluster) == 6
    nodes = {name.rpartition("/")[2]: found for name, found in server.applied.items() if "/nodes/" in name}
    assert list(nodes) == ["lab-0", "gpu-0-0", "gpu-0-1", "gpu-0-2", "local-controllers"]
    made = nodes["gpu-0-0"]
    assert made["metadata"]["labels"]["group"] == "gpu"
    assert made["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert made["status"]["allocatable"] == {"nvidia.com/gpu": "8", "nvidia.com/roce_gdr": "4"}
    assert nodes["local-controllers"]["metadata"]["labels"] == {"group": "system"}
    assert "/apis/storage.k8s.io/v1/storageclasses/efs" in server.objects


@pytest.mark.parametrize("cluster", ["gpu", {"pool": "gpu"}, {"pool": {"nodeSelector": "gpu"}}, {"storageClasses": 3}])
def test_malformed_settings_are_left_to_the_program(tmp_path: Path, cluster: Any) -> None:
    server = Server()
    assert plant(cast(Api, server), seed(tmp_path, NODE), cluster) == 1
    assert MARKER in server.objects


@pytest.mark.parametrize(
    ("document", "refuses", "message"),
    [
        (NODE, "nodes/lab-0", r"lab\.yaml: Node lab-0: PATCH .* 422 invalid"),
        (
            NODE.replace("kind: Node", "kind: Machine"),
            "",
            r"lab\.yaml: Machine lab-0: the cluster has no such kind in v1",
        ),
        (CLASS.replace("/v1", "/v9"), "", r"lab\.yaml: PriorityClass low: GET .* 404 not found"),
    ],
)
def test_an_object_that_cannot_be_applied_is_named_and_tried_again_next_time(
    tmp_path: Path, document: str, refuses: str, message: str
) -> None:
    server = Server()
    server.refuses = refuses
    with pytest.raises(SeedError, match=message):
        plant(cast(Api, server), seed(tmp_path, document))
    assert MARKER not in server.objects


def test_the_shipped_seed_is_a_site_with_three_gpu_nodes_and_one_without() -> None:
    file = Layout(Paths.of()).seed("existing")
    nodes = {found["metadata"]["name"]: found for found in yaml.safe_load_all(file.read_text())}
    gpus = {name: found for name, found in nodes.items() if found["metadata"]["labels"]["pool"] == "gpu"}
    assert sorted(gpus) == ["lab-gpu-0", "lab-gpu-1", "lab-gpu-2"]
    for name, found in gpus.items():
        assert found["metadata"]["labels"]["kubernetes.io/hostname"] == name
        assert found["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"
        assert found["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
        assert found["status"]["allocatable"] == found["status"]["capacity"]
        assert found["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert nodes["lab-cpu-0"]["status"]["capacity"] == {"cpu": "32", "memory": "128Gi", "pods": "110"}


def test_the_shipped_vm_has_kinds_storage_class_as_the_default() -> None:
    found = list(yaml.safe_load_all(Layout(Paths.of()).seed("cpouta").read_text()))
    (made,) = (each for each in found if each["kind"] == "StorageClass")
    assert made["metadata"]["name"] == KIND_CLASS
    assert made["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    (pods,) = (each for each in found if each["kind"] == "Deployment")
    pod = {**pods["spec"]["template"], "metadata": pods["metadata"], "status": READY}
    (provisioner,) = provisioners([pod])
    (binding,) = (each for each in found if each["kind"] == "ClusterRoleBinding")
    account = {
        "kind": "ServiceAccount",
        **dict(zip(("namespace", "name"), provisioner.user.split(":")[2:], strict=True)),
    }
    assert (provisioner.name, [account]) == (made["provisioner"], binding["subjects"])
