"""GPU nodes without machines: Node objects with a kubelet that KWOK simulates."""

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
"""Label of nodes with GPUs, as the GPU operator sets it (NVIDIA/gpu-operator, controllers/state_manager.go)."""


POOL_LABEL: Final = "mlbatch/pool"
"""Label with the pool's name, for simulated nodes in several pools."""


@dataclass(frozen=True, kw_only=True)
class SimulatedNodesArgs:
    """The nodes to simulate, named `<prefix>-0`, `<prefix>-1` and so on."""

    pool: NodePool
    prefix: str = "gpu-node"


class SimulatedNodes(Layer):
    """Register GPU nodes that KWOK keeps Ready. Pods on them do not run programs.

    A node's resources are in its status. The API server accepts the declared status only at creation, so a node with a
    new shape is replaced. After creation, the program does not manage taints (see `ownership`). KWOK must run next to
    the control plane. This does not install it.
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

    Annotation: KWOK manages nodes that have it (kwok.sigs.k8s.io, `--manage-nodes-with-annotation-selector`).
    Labels: those of a kubelet and NVIDIA's GPU feature discovery, and more_labels.
    """
    # A device plugin does not report zero amounts.
    amounts = {resource: str(amount) for resource, amount in shape.resources.items() if amount.nano}
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
