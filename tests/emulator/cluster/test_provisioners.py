"""Volumes from the simulated provisioners."""

from typing import Any

import pytest

from emulator.cluster.provisioners import (
    LocalPathProvisioner,
    NfsProvisioner,
    is_released,
    provisioners,
    volume,
    wants_volume,
)

NAME = "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner"
PROVISIONER = NfsProvisioner(NAME, "system:serviceaccount:nfs-provisioner:nfs", "192.168.98.96", "/gpfs/fs_ec")
LOCAL_PATH = LocalPathProvisioner("rancher.io/local-path", "system:serviceaccount:local-path-storage:local-path")
CLASS = {"metadata": {"name": "nfs"}, "provisioner": NAME, "reclaimPolicy": "Delete"}


def pod(ready: str = "True", image: str = "registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2") -> Any:
    variables = {"PROVISIONER_NAME": NAME, "NFS_SERVER": "192.168.98.96", "NFS_PATH": "/gpfs/fs_ec"}
    environment = [{"name": name, "value": value} for name, value in variables.items()]
    return {
        "metadata": {"name": "nfs-1", "namespace": "nfs-provisioner"},
        "spec": {"serviceAccountName": "nfs", "containers": [{"name": "nfs", "image": image, "env": environment}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def claim(provisioner: str = NAME, metadata: Any = None, **spec: Any) -> Any:
    identity = {"name": "granite", "namespace": "blue", "uid": "1-2", "resourceVersion": "7", **(metadata or {})}
    annotations = {"volume.kubernetes.io/storage-provisioner": provisioner}
    asked = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "50Gi"}}, **spec}
    return {"metadata": {**identity, "annotations": annotations}, "spec": {"storageClassName": "nfs", **asked}}


def test_a_provisioner_works_while_its_pod_is_ready() -> None:
    assert list(provisioners([pod()])) == [PROVISIONER]
    assert list(provisioners([pod(ready="False")])) == []
    assert list(provisioners([pod(image="busybox:1.37")])) == []


@pytest.mark.parametrize(
    ("found", "served"),
    [
        (claim(), True),
        (claim(provisioner="disk.csi.azure.com"), False),
        (claim(volumeName="pvc-1-2"), False),
        (claim(selector={"matchLabels": {"a": "b"}}), False),
        (claim(volumeMode="Block"), False),
        (claim(metadata={"deletionTimestamp": "2026-11-22T10:00:00Z"}), False),
    ],
)
def test_which_claims_it_serves(found: Any, served: bool) -> None:
    assert wants_volume(found, PROVISIONER) is served


def test_a_volume_is_a_folder_of_the_export_for_one_claim() -> None:
    made = volume(claim(), {**CLASS, "mountOptions": ["nfsvers=4.1"]}, PROVISIONER)
    assert made["metadata"] == {"name": "pvc-1-2", "annotations": {"pv.kubernetes.io/provisioned-by": NAME}}
    assert made["spec"]["nfs"] == {"server": "192.168.98.96", "path": "/gpfs/fs_ec/blue-granite-pvc-1-2"}
    assert made["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": "granite",
        "namespace": "blue",
        "resourceVersion": "7",
        "uid": "1-2",
    }
    assert made["spec"]["capacity"] == {"storage": "50Gi"}
    assert made["spec"]["accessModes"] == ["ReadWriteMany"]
    assert made["spec"]["mountOptions"] == ["nfsvers=4.1"]
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"


@pytest.mark.parametrize(
    ("phase", "policy", "by", "deleted"),
    [
        ("Released", "Delete", NAME, True),
        ("Bound", "Delete", NAME, False),
        ("Released", "Retain", NAME, False),
        ("Released", "Delete", "disk.csi.azure.com", False),
    ],
)
def test_it_deletes_its_own_volumes_after_their_claims(phase: str, policy: str, by: str, deleted: bool) -> None:
    found = {
        "metadata": {"name": "pvc-1-2", "annotations": {"pv.kubernetes.io/provisioned-by": by}},
        "spec": {"persistentVolumeReclaimPolicy": policy},
        "status": {"phase": phase},
    }
    assert is_released(found, PROVISIONER) is deleted


def claim_of_a_node(node: str = "vm", **spec: Any) -> Any:
    found = claim(LOCAL_PATH.name, **{"accessModes": ["ReadWriteOnce"], **spec})
    found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = node
    return found


def test_kinds_provisioner_is_known_by_its_image() -> None:
    found = pod(image="docker.io/kindest/local-path-provisioner:v20250214-acbabc1a")
    found["metadata"]["namespace"], found["spec"]["serviceAccountName"] = "local-path-storage", "local-path"
    assert list(provisioners([found])) == [LOCAL_PATH]


@pytest.mark.parametrize(
    ("found", "served"),
    [
        (claim_of_a_node(), True),
        (claim_of_a_node(accessModes=["ReadWriteOncePod"]), True),
        (claim_of_a_node(accessModes=["ReadWriteOnce", "ReadWriteMany"]), False),
        (claim_of_a_node(node=""), False),
        (claim_of_a_node(volumeMode="Block"), False),
    ],
)
def test_kinds_provisioner_serves_one_node_that_the_scheduler_has_chosen(found: Any, served: bool) -> None:
    assert wants_volume(found, LOCAL_PATH) is served


def test_kinds_volume_is_a_folder_of_its_node_for_pods_of_that_node() -> None:
    made = volume(claim_of_a_node(), {**CLASS, "metadata": {"name": "standard"}}, LOCAL_PATH)["spec"]
    folder = "/var/local-path-provisioner/pvc-1-2_blue_granite"
    assert made["hostPath"] == {"path": folder, "type": "DirectoryOrCreate"}
    (term,) = made["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["vm"]}]
