"""Volumes for simulated nodes, which have no disks: claims are bound, and nothing is ever written to them."""

from __future__ import annotations

from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

CLASS: Final = "simulated"
PROVISIONER: Final = "kubernetes.io/host-path"
"""Kubernetes' own for trying things out, which kube-controller-manager serves with `--enable-hostpath-provisioner`, as
kind has it. It gives each claim what it asks for, from as many nodes as it asks for, and deletes the volume with its
claim (kubernetes/kubernetes v1.34.2, pkg/volume/hostpath/host_path.go; kubernetes-sigs/kind,
pkg/cluster/internal/kubeadm/config.go)."""
_IMMUTABLE: Final = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]
"""What the API server lets nobody change."""


class SimulatedVolumes(Layer):
    """Register the storage class of simulated nodes' volumes. It is not the cluster's default."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:SimulatedVolumes", name, None, opts)
        options = pulumi.ResourceOptions(parent=self, replace_on_changes=_IMMUTABLE, delete_before_replace=True)
        self.ready = [Manifest(f"{name}/StorageClass", storage_class(), options)]
        self.register_outputs({"storageClass": CLASS})


def storage_class() -> Document:
    """Return the class. A pod waits for its volumes before it is placed, so that they are made at once."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
