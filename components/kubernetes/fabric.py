"""The RDMA devices that a job's pods request, and the variables that make NCCL and UCX use them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_DIRECT: Final = "NCCL_NET_GDR_LEVEL"


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """The RDMA devices of one node, for a pod that takes the whole node.

    resource: name of the extended resource. None if nodes have none.
    devices: how many of it a pod requests.
    variables: for NCCL and UCX, the same for every job.
    switch_variables: for reductions in the network's switches (SHARP). Empty if the switches do not support it.
    topology: name of the file that describes the machine's devices to NCCL, in images that have it. None if NCCL
    detects them.
    cores: CPU cores that MPI binds each rank of the NCCL test to. None binds a rank to its NUMA node.
    """

    resource: str | None = None
    devices: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    switch_variables: Mapping[str, str] = field(default_factory=dict)
    topology: str | None = None
    cores: int | None = None

    def requests(self) -> Mapping[str, str]:
        """Return the requests of a pod by resource name."""
        return {self.resource: str(self.devices)} if self.resource is not None and self.devices else {}

    def direct_variable(self) -> dict[str, str]:
        """Return the variable that makes NCCL copy directly between GPUs and network devices at any distance.

        Empty without such devices, or if `variables` sets a distance.
        """
        return {_DIRECT: "5"} if self.resource is not None and _DIRECT not in self.variables else {}

    def topology_variable(self, folder: str) -> Mapping[str, str]:
        """Return the variable with the topology file's path, empty without one. folder: of these files in an image."""
        return {"NCCL_TOPO_FILE": f"{folder}/{self.topology}"} if self.topology is not None else {}


NO_RDMA: Final = Fabric(variables={"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_SOCKET_IFNAME": "eth0"})
"""Nodes without RDMA: NCCL uses NVLink in a node and sockets between nodes (edwardsp/ai-on-aks, examples/metaseq)."""
