"""What a job's pods ask of the network between GPU nodes, and the variables that make NCCL and UCX use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_DIRECT: Final = "NCCL_NET_GDR_LEVEL"


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """The RDMA devices of one node, as a pod that takes the whole node asks for them.

    resource: name of the extended resource; None where nodes have none. devices: how many of it a pod gets.
    variables: for NCCL and UCX, the same for every job.
    switch_variables: for reductions in the network's switches (SHARP); empty where the switches offer none.
    topology: name of the file that tells NCCL how the machine's devices are wired, in images that have it; None where
        NCCL finds out by itself.
    """

    resource: str | None = None
    devices: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    switch_variables: Mapping[str, str] = field(default_factory=dict)
    topology: str | None = None

    def requests(self) -> Mapping[str, str]:
        """Return what a pod asks for, by resource name."""
        return {self.resource: str(self.devices)} if self.resource is not None and self.devices else {}

    def direct_variable(self) -> dict[str, str]:
        """Return what has NCCL move data between GPUs and network devices directly, however far they are apart.

        None without such devices, nor where the variables that are the same for every job say how far.
        """
        return {_DIRECT: "5"} if self.resource is not None and _DIRECT not in self.variables else {}

    def topology_variable(self, folder: str) -> Mapping[str, str]:
        """Return the variable that names the topology file, none without one. folder: where an image has such files."""
        return {"NCCL_TOPO_FILE": f"{folder}/{self.topology}"} if self.topology is not None else {}


NO_RDMA: Final = Fabric(variables={"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_SOCKET_IFNAME": "eth0"})
"""Nodes without RDMA: NCCL uses NVLink within a node and sockets between nodes (edwardsp/ai-on-aks, examples/metaseq).
"""
