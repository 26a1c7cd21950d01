"""Machine types that the platform knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from components import names
from components.kubernetes.node_pool import NodeShape
from components.kubernetes.quantity import Quantity


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """A machine type that the platform knows.

    cpu, memory: as quantities; gpus: pieces; pods: the kubelet's limit; source: where the numbers come from.
    """

    name: str
    cpu: str
    memory: str
    gpus: int
    gpu_product: str
    pods: int
    source: str


_H100 = "NVIDIA-H100-80GB-HBM3"

INSTANCE_TYPES: Final = {
    machine.name: machine
    for machine in (
        InstanceType(
            name="h100-sxm5-8x",
            cpu="224",
            memory="2113411288Ki",
            gpus=8,
            gpu_product=_H100,
            pods=250,
            source="MLBatch tutorial for KubeCon EU 2025: worker nodes of the OpenShift cluster pokprod",
        ),
        InstanceType(
            name="Standard_ND96isr_H100_v5",
            cpu="96",
            memory="1900Gi",
            gpus=8,
            gpu_product=_H100,
            pods=250,
            source="https://learn.microsoft.com/azure/virtual-machines/sizes/gpu-accelerated/ndh100v5-series",
        ),
    )
}


def node_shape(
    machine: InstanceType,
    *,
    gpus: int | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    rdma_devices: int = 0,
    infiniband_ports: int = 0,
) -> NodeShape:
    """Return the shape of a machine type, with what is given in place of the type's own numbers."""
    resources = {
        names.CPU: cpu or Quantity.parse(machine.cpu),
        names.MEMORY: memory or Quantity.parse(machine.memory),
        names.GPU: Quantity.parse(machine.gpus if gpus is None else gpus),
        names.RDMA: Quantity.parse(rdma_devices),
        names.INFINIBAND: Quantity.parse(infiniband_ports),
        names.PODS: Quantity.parse(machine.pods),
    }
    return NodeShape(instance_type=machine.name, gpu_product=machine.gpu_product, resources=resources)
