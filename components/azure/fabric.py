"""InfiniBand between the GPU nodes, for jobs.

Source of all variables: edwardsp/ai-on-aks, the job templates of `examples/metaseq`, `examples/nccl-allreduce` and
`examples/olmojob`. They are for Standard_ND96isr_H100_v5 nodes of AKS, with eight ConnectX-7 ports that AKS names
mlx5_0 to mlx5_7. Sockets use eth0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from components import names
from components.kubernetes.fabric import NO_RDMA, Fabric

SRIOV: Final = Fabric(
    resource=names.INFINIBAND,
    devices=8,
    variables={
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NCCL_IB_PCI_RELAXED_ORDERING": "1",
        "NCCL_MIN_NCHANNELS": "32",
        "NCCL_SOCKET_IFNAME": "eth0",
        "UCX_IB_PCI_RELAXED_ORDERING": "on",
        "UCX_MEM_EVENTS": "n",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "UCX_TLS": "rc",
    },
    switch_variables={
        "SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING": "1",
        "SHARP_COLL_ENABLE_SAT": "1",
        "SHARP_COLL_LOG_LEVEL": "3",
        "SHARP_SMX_UCX_INTERFACE": "mlx5_0:1",
    },
    topology="ndv5-topo.xml",  # of Azure/azhpc-images
)
"""Each port is a device of the SR-IOV plugin. A pod with eight GPUs gets all eight."""

SHARED: Final = replace(SRIOV, resource=names.SHARED_INFINIBAND, devices=1)
"""One device of the shared plugin gives a pod all ports."""


def fabric(ports: int, *, shared: bool = False) -> Fabric:
    """Return what pods request on nodes with this number of ports. shared: the shared plugin offers them."""
    if shared:
        return SHARED
    return replace(SRIOV, devices=ports) if ports else NO_RDMA
