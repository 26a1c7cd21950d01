"""Machine types that a simulated or an existing cluster may name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from components import names
from components.health.thresholds import Scope, Threshold
from components.kubernetes.node_pool import NodeShape
from components.kubernetes.quantity import Quantity
from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine type, with the resources that pods of one node can use.

    cpu, memory: quantities, without the part that is reserved for the system.
    gpu_product: value of the label `nvidia.com/gpu.product`.
    ports: number of InfiniBand ports, assigned one by one.
    pods: the kubelet's limit.
    thresholds: bandwidth of NCCL's all-reduce on healthy machines, if a source has it.
    """

    name: str
    cpu: str
    memory: str
    gpus: int
    gpu_product: str
    ports: int = 0
    pods: int
    source: str
    thresholds: Mapping[Scope, Threshold] = field(default_factory=dict)

    def shape(
        self,
        *,
        gpus: int | None = None,
        cpu: Quantity | None = None,
        memory: Quantity | None = None,
        roce_devices: int = 0,
        ports: int | None = None,
    ) -> NodeShape:
        """Return the shape of a node. Arguments override the type's values."""
        resources = {
            names.CPU: cpu or Quantity.parse(self.cpu),
            names.MEMORY: memory or Quantity.parse(self.memory),
            names.GPU: Quantity.parse(self.gpus if gpus is None else gpus),
            names.RDMA: Quantity.parse(roce_devices),
            names.INFINIBAND: Quantity.parse(self.ports if ports is None else ports),
            names.PODS: Quantity.parse(self.pods),
        }
        return NodeShape(instance_type=self.name, gpu_product=self.gpu_product, resources=resources)


class _Machines(Table):
    machines: tuple[Machine, ...]


MACHINES: Final = {machine.name: machine for machine in _Machines.load(__name__).machines}
"""Machine types of no cloud, by name. A cloud's own are next to its sizes."""
H100_SXM5: Final = MACHINES["h100-sxm5-8x"]
