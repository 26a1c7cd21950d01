"""Volumes for simulated nodes, which have no disks. PVCs are bound, but no data is written."""

from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

CLASS: Final = "simulated"
PROVISIONER: Final = "kubernetes.io/host-path"
"""Kubernetes' provisioner for tests, which kube-controller-manager runs with `--enable-hostpath-provisioner`, as in
kind. It accepts every size and access mode, and deletes the volume with its PVC (kubernetes/kubernetes v1.34.2,
pkg/volume/hostpath/host_path.go; kubernetes-sigs/kind, pkg/cluster/internal/kubeadm/config.go)."""
_IMMUTABLE: Final = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]
"""Fields that the API server does not let change."""


class SimulatedVolumes(Layer):
    """Create the storage class for simulated nodes. It is not the cluster's default."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:SimulatedVolumes", name, None, opts)
        options = pulumi.ResourceOptions(parent=self, replace_on_changes=_IMMUTABLE, delete_before_replace=True)
        self.ready = [Manifest(f"{name}/StorageClass", storage_class(), options)]
        self.register_outputs({"storageClass": CLASS})


def storage_class() -> Document:
    """Return the class. It provisions volumes at once, because pods are scheduled only after these are bound."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
