"""What a VM is to the cluster on it."""

from __future__ import annotations

from typing import Final

from components import names
from components.kubernetes.node_pool import NodeShape
from components.kubernetes.quantity import Quantity
from components.openstack.flavors import Flavor

_PODS: Final = Quantity.parse(110)
"""The kubelet's default limit of pods on a node."""


def node_shape(flavor: Flavor) -> NodeShape:
    """Return what the one node has for pods: kind's node has all of the VM."""
    return NodeShape(
        instance_type=flavor.name,
        gpu_product=flavor.gpu,
        resources={
            names.CPU: Quantity.parse(flavor.cores),
            names.MEMORY: Quantity.parse(f"{flavor.memory_gib}Gi"),
            names.GPU: Quantity.parse(flavor.gpus),
            names.RDMA: Quantity.parse(0),
            names.INFINIBAND: Quantity.parse(0),
            names.PODS: _PODS,
        },
    )
