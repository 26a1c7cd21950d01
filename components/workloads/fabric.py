"""What a job's pods ask of the network between GPU nodes, and the variables that make NCCL and UCX use it.

Source of all variables: edwardsp/ai-on-aks, the job templates of `examples/metaseq`, `examples/nccl-allreduce` and
`examples/olmojob`. They hold for Standard_ND96isr_H100_v5 nodes of AKS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from components import names


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """The network devices of one node, as a pod that takes the whole node asks for them.

    resource: name of the extended resource; None where nodes have no InfiniBand. devices: how many of it a pod gets.
    variables: for NCCL and UCX, the same for every job.
    """

    resource: str | None = None
    devices: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)

    def requests(self) -> Mapping[str, str]:
        """Return what a pod asks for, by resource name."""
        return {self.resource: str(self.devices)} if self.resource is not None and self.devices else {}


NDV5_VARIABLES: Final = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "NCCL_IB_PCI_RELAXED_ORDERING": "1",
    "NCCL_MIN_NCHANNELS": "32",
    "NCCL_SOCKET_IFNAME": "eth0",
    "UCX_IB_PCI_RELAXED_ORDERING": "on",
    "UCX_MEM_EVENTS": "n",
    "UCX_NET_DEVICES": "mlx5_0:1",
    "UCX_TLS": "rc",
}
"""Eight ConnectX-7 ports, which AKS names mlx5_0 to mlx5_7; sockets go over eth0."""

SHARP_VARIABLES: Final = {
    "SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING": "1",
    "SHARP_COLL_ENABLE_SAT": "1",
    "SHARP_COLL_LOG_LEVEL": "3",
    "SHARP_SMX_UCX_INTERFACE": "mlx5_0:1",
}
"""For reductions in the switches. Without effect unless NCCL is told to use CollNet."""

COLLNET_VARIABLES: Final = {"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "CollnetChain,NVLS"}
"""Lets NCCL use CollNet and NVLink SHARP only: where the switches offer no SHARP, it fails instead of choosing another
algorithm."""

PLAIN_VARIABLES: Final = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_SOCKET_IFNAME": "eth0"}

SRIOV: Final = Fabric(resource=names.INFINIBAND, devices=8, variables=NDV5_VARIABLES)
"""Each port is a device of the SR-IOV plugin: a pod of eight GPUs gets all eight."""

SHARED: Final = Fabric(resource=names.SHARED_INFINIBAND, devices=1, variables=NDV5_VARIABLES)
"""One device of the shared plugin gives a pod every port."""

NONE: Final = Fabric(variables=PLAIN_VARIABLES)
"""Nodes without InfiniBand: NCCL uses NVLink within a node and sockets between nodes."""


def topology(path: str | None, fabric: Fabric) -> Mapping[str, str]:
    """Return the variable that names NCCL's topology file, where the fabric needs one.

    path: in the image; the images of ai-on-aks have ndv5-topo.xml of Azure/azhpc-images at a path of their own.
    """
    return {"NCCL_TOPO_FILE": path} if path is not None and fabric.resource is not None else {}
