"""InfiniBand between the GPU nodes, for jobs.

Source of the variables: Azure/ai-infrastructure-on-azure at a01b073, `infrastructure_validations/aks/NCCL/helm`. Its
values.yaml is for H100 and H200, values-gb300.yaml for Grace. Its training job in examples/megatron-lm sets the same
ones. UCX_IB_PCI_RELAXED_ORDERING and UCX_MEM_EVENTS are from edwardsp/ai-on-aks. AKS names the ports mlx5_0 to mlx5_7.
Sockets use eth0.
"""

from dataclasses import replace
from typing import Final

from components import names
from components.kubernetes.fabric import NO_RDMA, Fabric

_V4: Final = Fabric(
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
    topology="ndv4-topo.xml",
)
"""ND A100 v4. Azure's recipes on AKS have no variables for it."""

SRIOV: Final = replace(
    _V4,
    variables={
        **_V4.variables,
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_IGNORE_CPU_AFFINITY": "1",
        "NCCL_P2P_NET_CHUNKSIZE": str(512 * 1024),
        "NCCL_PXN_DISABLE": "1",
    },
    topology="ndv5-topo.xml",
    cores=12,
)
"""ND H100 v5 and ND H200 v5. Each port is a device of the SR-IOV plugin. A pod with eight GPUs gets all eight."""

_GRACE: Final = replace(NO_RDMA, resource=names.INFINIBAND)
"""Grace machines. Azure's recipe unsets the variables of H100."""


def fabric(ports: int, topology: str | None, *, shared: bool = False) -> Fabric:
    """Return what pods request on nodes with this number of ports and this topology file.

    shared: the shared plugin offers the ports. One of its devices gives a pod all ports.
    """
    if not ports:
        return NO_RDMA
    found = next((each for each in (SRIOV, _V4) if each.topology == topology), _GRACE)
    return replace(found, resource=names.SHARED_INFINIBAND, devices=1) if shared else replace(found, devices=ports)
