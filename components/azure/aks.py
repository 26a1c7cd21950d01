"""What every AKS cluster brings with it: labels of nodes, a class of disks, internal load balancers, local disks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup

SYSTEM_NODES: Final = NodeGroup(node_selector={"kubernetes.azure.com/mode": "system"})
"""AKS gives this label to the nodes of system pools."""

GPU_LABEL: Final[Mapping[str, str]] = {"kubernetes.azure.com/accelerator": "nvidia"}
"""AKS gives this label to the nodes of every pool with NVIDIA GPUs."""

BLOCK_CLASS: Final = "managed-csi-premium"
"""Class of premium disks, one of those that AKS creates (learn.microsoft.com/azure/aks/concepts-storage)."""

DISKS: Final = (BLOCK_CLASS, "managed-csi", "default", "managed", "managed-premium")
"""Storage classes that AKS creates for disks, which one node at a time mounts."""
SHARES: Final = ("azurefile-csi", "azurefile-csi-premium", "azurefile", "azurefile-premium")
"""Storage classes that AKS creates for shares, which many nodes mount (learn.microsoft.com/azure/aks/concepts-storage).
"""
LARGEST_DISK: Final = "32767Gi"
"""Of standard and premium SSDs (learn.microsoft.com/azure/virtual-machines/disks-types)."""

INTERNAL_LOAD_BALANCER: Final[Mapping[str, str]] = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
"""Annotation of a Service whose load balancer has an address of the virtual network."""

RETIRED_TAG: Final = "SkipGPUDriverInstall"
"""What kept AKS from installing a GPU driver until 14 August 2025 (Azure/AKS issue 4925)."""

LOCAL_DISKS: Final = "Microsoft NVMe Direct Disk( v2)?"
"""Models of local NVMe disks; those of the operating system and remote ones have others (Azure/azure-vm-utils,
`azure-nvme-id`)."""


LONGEST_IDENTITY: Final = 128
"""Characters in the name of an identity (learn.microsoft.com/azure/azure-resource-manager/management/
resource-name-rules, Microsoft.ManagedIdentity)."""


SPOT_TAINT: Final = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
"""Of spot machines (learn.microsoft.com/azure/aks/spot-node-pool)."""
_POOL: Final = "kubernetes.azure.com/agentpool"
"""The label of each node with its pool's name (learn.microsoft.com/azure/aks/use-labels, reserved system labels)."""


def gpu_nodes(*, taint: bool, spot: bool = False, pool: str | None = None) -> NodeGroup:
    """Return the nodes with GPUs.

    taint: they have the GPU taint. spot: and that of spot machines. pool: those of one pool, None for all of them.
    """
    labels = GPU_LABEL if pool is None else {**GPU_LABEL, _POOL: pool}
    bought = {"key": SPOT_TAINT["key"], "operator": "Equal", "value": "spot", "effect": SPOT_TAINT["effect"]}
    return NodeGroup(
        node_selector=labels, tolerations=[*([GPU_TOLERATION] if taint else []), *([bought] if spot else [])]
    )


def infiniband_deployment(cluster: str) -> str:
    """Return the name of the deployment that registers InfiniBand for a cluster."""
    return f"{cluster}-infiniband"


def namespace_identity(cluster: str, namespace: str) -> str:
    """Return the name of the identity as which a namespace's pods mount volumes, of at most `LONGEST_IDENTITY`."""
    return f"{cluster}-in-{namespace}"
