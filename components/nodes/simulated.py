"""GPU nodes without machines: Node objects whose kubelet KWOK plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pulumi

from components import names, ownership
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.node_pool import GPU_TAINT, NodePool, NodeShape
from components.layer import Layer

GPU_LABEL: Final[Mapping[str, str]] = {"nvidia.com/gpu.present": "true"}
"""Of nodes with GPUs, as the GPU operator sets it (NVIDIA/gpu-operator, controllers/state_manager.go)."""


POOL_LABEL: Final = "mlbatch/pool"
"""Of simulated nodes where there are several pools, whose name it has."""


@dataclass(frozen=True, kw_only=True)
class SimulatedNodesArgs:
    """The nodes to simulate, named `<prefix>-0`, `<prefix>-1` and so on."""

    pool: NodePool
    prefix: str = "gpu-node"


class SimulatedNodes(Layer):
    """Register GPU nodes that KWOK keeps Ready; pods on them run for show.

    A node's resources are declared in its status, which the API server takes at creation and ignores afterwards: a node
    whose shape changes is therefore replaced. Taints belong to the cluster after creation (see `ownership`). Does not
    install KWOK, which runs beside the control plane.
    """

    def __init__(self, name: str, args: SimulatedNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:SimulatedNodes", name, None, opts)
        options = pulumi.ResourceOptions(
            parent=self,
            ignore_changes=ownership.ignored("Node"),
            replace_on_changes=["status"],
            delete_before_replace=True,
        )
        node_names = [f"{args.prefix}-{index}" for index in range(args.pool.count)]
        shape, labels = args.pool.shape, args.pool.nodes.node_selector
        self.ready = [Manifest(node_name, node(node_name, shape, labels), options) for node_name in node_names]
        self.register_outputs({"nodes": node_names})


def node(name: str, shape: NodeShape, more_labels: Mapping[str, str] = MappingProxyType({})) -> Document:
    """Return a simulated node.

    Annotation: KWOK manages the nodes that carry it (kwok.sigs.k8s.io, `--manage-nodes-with-annotation-selector`).
    Labels: as a kubelet and NVIDIA's GPU feature discovery set them, and more_labels.
    """
    amounts = _amounts(shape)
    labels: dict[str, str] = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": shape.instance_type,
    }
    spec: dict[str, Any] = {}
    if names.GPU in amounts:
        labels |= {**GPU_LABEL, **more_labels}
        labels["nvidia.com/gpu.product"] = shape.gpu_product
        spec["taints"] = [GPU_TAINT]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _amounts(shape: NodeShape) -> Mapping[str, str]:
    """Return what the node reports: resources that it has none of are not reported, as a device plugin would not."""
    return {resource: str(amount) for resource, amount in shape.resources.items() if amount.nano}
