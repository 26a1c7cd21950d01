"""Target `openshift`: the seeds' cluster, and what OpenShift alone asks for.

Seeds: the MLBatch tutorial for KubeCon EU 2025 (`setup.KubeConEU25/README.md` of project-codeflare/mlbatch, called the
tutorial below) and MLBatch's guide for a cluster (`setup.k8s/CLUSTER-SETUP.md`, the guide).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.artifacts import Mirror
from stacks import deploy, inputs
from stacks.cluster_facts import ClusterFacts, NodeFacts, comes_with_admission_policies
from stacks.errors import SettingsError
from stacks.inputs import StackInputs
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build

WORKERS = ("pokprod-b93r38s3", "pokprod-b93r39s2", "pokprod-b93r44s0")
"""As the tutorial names them."""
ALLOCATABLE = {"cpu": "224", "memory": "2113411288Ki", "nvidia.com/gpu": "8", "pods": "250"}


def worker(name: str, labels: Mapping[str, str] = {}, **allocatable: str) -> NodeFacts:
    gpus = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return NodeFacts(name=name, labels={**gpus, **labels}, allocatable={**ALLOCATABLE, **allocatable})


NODES = tuple(worker(name) for name in WORKERS)


def shipped() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.openshift.yaml").read_text())["config"]
    return {name.removeprefix("mlbatch:"): copy.deepcopy(value) for name, value in config.items()}


def loaded(
    raw: Mapping[str, Any],
    mirror: Mirror,
    kubeconfig: Path,
    nodes: tuple[NodeFacts, ...] = NODES,
    version: str = "1.34",
    openshift: str | None = "4.21.3",
) -> StackInputs[Any]:
    def ask(config: object, settings: object, selector: Mapping[str, str] | None) -> ClusterFacts:
        return ClusterFacts(
            identifier="0d5a7b6e-3c55-4a8e-8f7e-f9f4d5ab0c10",
            version=version,
            nodes=nodes if selector is not None else (),
            has_admission_policies=comes_with_admission_policies(version),
            storage_classes=frozenset(),
            openshift=openshift,
        )

    files = {"artifacts": mirror.artifacts, "verify": False}
    return inputs.interpret({**raw, "mirror": files}, base=ROOT, environment={"KUBECONFIG": str(kubeconfig)}, ask=ask)


def refused(raw: Mapping[str, Any], mirror: Mirror, kubeconfig: Path, **cluster: Any) -> str:
    with pytest.raises(SettingsError) as error:
        loaded(raw, mirror, kubeconfig, **cluster)
    assert len(error.value.problems) == 1, str(error.value)
    return str(error.value)


def registered(stack: StackInputs[Any]) -> Record:
    return build(lambda: deploy(stack), outputs=lambda kind, name, given: {"result": "made-up"})


@pytest.fixture(scope="module")
def record() -> Record:
    from tests.unit.whole_stacks import registered as whole

    return whole("openshift")


class TestCluster:
    def test_the_example_is_the_tutorials_cluster(self, mirror: Mirror, kubeconfig: Path) -> None:
        stack = loaded(shipped(), mirror, kubeconfig)
        pool = stack.resolved.pool
        assert (pool.count, str(pool.resources["nvidia.com/gpu"])) == (3, "24")
        assert str(stack.resolved.slack["nvidia.com/gpu"]) == "8"
        assert {name: str(quota["nvidia.com/gpu"]) for name, quota in stack.resolved.quotas.items()} == {
            "blue": "8",
            "red": "8",
        }

    def test_a_cluster_that_is_no_openshift(self, mirror: Mirror, kubeconfig: Path) -> None:
        text = refused(shipped(), mirror, kubeconfig, openshift=None)
        assert 'mlbatch:target = "openshift"' in text
        assert "it has no ClusterVersion" in text
        assert "set mlbatch:target to existing" in text

    @pytest.mark.parametrize(("version", "is_refused"), [("4.13.58", True), ("4.14.0", False), ("4.21.3", False)])
    def test_an_openshift_that_nobody_tried(
        self, version: str, is_refused: bool, mirror: Mirror, kubeconfig: Path
    ) -> None:
        if not is_refused:
            assert loaded(shipped(), mirror, kubeconfig, openshift=version)
            return
        text = refused(shipped(), mirror, kubeconfig, openshift=version)
        assert "this cluster has OpenShift 4.13.58" in text
        assert "OpenShift 4.14 or later" in text


class TestNfs:
    """The tutorial's Persistent Storage Setup."""

    def test_the_provisioner_has_the_tutorials_names_and_export(self, record: Record) -> None:
        name = "pokprod-nfs-subdir-external-provisioner"
        pod = record.one("Deployment", name, "nfs-provisioner").inputs["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == name
        assert pod["volumes"] == [
            {
                "name": "nfs-subdir-external-provisioner-root",
                "nfs": {"server": "192.168.98.96", "path": "/gpfs/fs_ec/pokprod002"},
            }
        ]
        (container,) = pod["containers"]
        assert container["image"].startswith("registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2")
        assert {item["name"]: item["value"] for item in container["env"]} == {
            "PROVISIONER_NAME": "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner",
            "NFS_SERVER": "192.168.98.96",
            "NFS_PATH": "/gpfs/fs_ec/pokprod002",
        }

    def test_the_storage_class_is_what_the_tutorial_shows(self, record: Record) -> None:
        made = record.one("StorageClass", "nfs-client-pokprod").inputs
        assert made["provisioner"] == "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner"
        assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
        assert made["allowVolumeExpansion"] is True
        assert made["parameters"] == {"archiveOnDelete": "true"}
        assert "annotations" not in made["metadata"], "it is not the default class"

    def test_the_grant_is_exactly_the_provisioners(self, record: Record) -> None:
        binding = record.one("RoleBinding", "system:openshift:scc:hostmount-anyuid", "nfs-provisioner")
        assert binding.inputs["roleRef"]["name"] == "system:openshift:scc:hostmount-anyuid"
        assert binding.inputs["subjects"] == [
            {
                "kind": "ServiceAccount",
                "name": "pokprod-nfs-subdir-external-provisioner",
                "namespace": "nfs-provisioner",
            }
        ]
        deployment = record.one("Deployment", "pokprod-nfs-subdir-external-provisioner")
        assert binding.urn in record.closure(deployment), "its pod would be refused"

    def test_everything_that_stores_waits_for_the_class(self, record: Record) -> None:
        made = record.one("StorageClass", "nfs-client-pokprod")
        assert made.urn in record.closure(record.one("ClusterQueue", "blue-cluster-queue"))

    def test_no_server_no_provisioner(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "nfs": {}}
        record = registered(loaded(raw, mirror, kubeconfig))
        assert record.of("StorageClass") == []
        assert not [item for item in record.of("RoleBinding") if ":scc:" in item.object_name]

    @pytest.mark.parametrize(
        ("nfs", "where", "said"),
        [
            ({"path": "/export"}, "mlbatch:nfs.server", "nothing says which NFS server has the volumes"),
            ({"server": "nfs.lab.example"}, "mlbatch:nfs.path", "nothing says what the server exports"),
            ({"server": "nfs://lab", "path": "/e"}, 'mlbatch:nfs.server = "nfs://lab"', "name or address"),
            ({"server": "lab:/e", "path": "/e"}, 'mlbatch:nfs.server = "lab:/e"', "name or address"),
            ({"server": "lab", "path": "e"}, 'mlbatch:nfs.path = "e"', "path of an export"),
            ({"server": "lab", "path": "/e/../f"}, 'mlbatch:nfs.path = "/e/../f"', "path of an export"),
            ({"server": "lab", "path": "/e", "storageClass": "NFS"}, "mlbatch:nfs.storageClass", "storage class"),
            ({"server": "lab", "path": "/e", "provisionerName": "a b"}, "nfs.provisionerName", "would reject"),
            ({"server": "lab", "path": "/e", "release": "Pok"}, "mlbatch:nfs.release", "would reject"),
        ],
    )
    def test_half_a_server(self, nfs: dict[str, str], where: str, said: str, mirror: Mirror, kubeconfig: Path) -> None:
        text = refused({**shipped(), "nfs": nfs}, mirror, kubeconfig)
        assert where in text
        assert said in text


class TestPodsOfThePlatform:
    def test_none_names_a_user_outside_of_its_namespaces_range(self, record: Record) -> None:
        """`restricted-v2` refuses them; the provisioner alone has a grant for root."""
        named = {
            item.object_name: user
            for kind in ("Deployment", "DaemonSet", "StatefulSet", "Job")
            for item in record.of(kind)
            for pod in [item.inputs["spec"]["template"]["spec"]]
            for place in (pod, *pod["containers"], *pod.get("initContainers", ()))
            if (user := place.get("securityContext", {}).get("runAsUser")) is not None
        }
        assert named == {"pokprod-nfs-subdir-external-provisioner": 0}

    def test_namespaces_of_teams_leave_pod_security_to_the_constraints(self, record: Record) -> None:
        labels = record.one("Namespace", "blue").inputs["metadata"]["labels"]
        assert labels == {"mlbatch-team-namespace": "true"}
