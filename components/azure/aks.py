"""Properties of every AKS cluster: labels of nodes, storage classes, internal load balancers, local disks."""

from collections.abc import Mapping
from typing import Final

from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup

SYSTEM_NODES: Final = NodeGroup(node_selector={"kubernetes.azure.com/mode": "system"})
"""AKS gives this label to the nodes of system pools."""

GPU_LABEL: Final[Mapping[str, str]] = {"kubernetes.azure.com/accelerator": "nvidia"}
"""AKS gives this label to the nodes of every pool with NVIDIA GPUs."""

BLOCK_CLASS: Final = "managed-csi-premium"
"""Storage class for premium disks, which AKS creates (learn.microsoft.com/azure/aks/concepts-storage)."""

DISKS: Final = (BLOCK_CLASS, "managed-csi", "default", "managed", "managed-premium")
"""Storage classes that AKS creates for disks. One node at a time can mount such a disk."""
SHARES: Final = ("azurefile-csi", "azurefile-csi-premium", "azurefile", "azurefile-premium")
"""Storage classes that AKS creates for shares. Many nodes can mount them
(learn.microsoft.com/azure/aks/concepts-storage)."""
LARGEST_DISK: Final = "32767Gi"
"""Largest standard and premium SSD (learn.microsoft.com/azure/virtual-machines/disks-types)."""

INTERNAL_LOAD_BALANCER: Final[Mapping[str, str]] = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
"""Annotation of a Service that gives its load balancer an address of the virtual network."""

RETIRED_TAG: Final = "SkipGPUDriverInstall"
"""Tag that disabled the GPU driver of AKS until 14 August 2025 (Azure/AKS issue 4925)."""

LOCAL_DISKS: Final = "Microsoft NVMe Direct Disk( v2)?"
"""Models of local NVMe disks. OS disks and remote disks have other models (Azure/azure-vm-utils, `azure-nvme-id`)."""


LONGEST_IDENTITY: Final = 128
"""The most characters in the name of an identity
(learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules, Microsoft.ManagedIdentity)."""


SPOT_TAINT: Final = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
"""Taint of spot machines (learn.microsoft.com/azure/aks/spot-node-pool)."""
_POOL: Final = "kubernetes.azure.com/agentpool"
"""Label of each node with its pool's name (learn.microsoft.com/azure/aks/use-labels, reserved system labels)."""

LOG_CATEGORIES: Final = (
    "cloud-controller-manager",
    "cluster-autoscaler",
    "csi-azuredisk-controller",
    "csi-azurefile-controller",
    "csi-snapshot-controller",
    "guard",
    "kube-apiserver",
    "kube-audit",
    "kube-audit-admin",
    "kube-controller-manager",
    "kube-scheduler",
)
"""Logs of clusters without a fleet and without Karpenter (learn.microsoft.com/azure/azure-monitor/reference/
supported-logs/microsoft-containerservice-managedclusters-logs)."""
LOG_DEFAULTS: Final = ("cluster-autoscaler", "guard", "kube-audit-admin", "kube-controller-manager")
"""Those of Azure's baseline (mspnp/aks-baseline, cluster-stamp.bicep). kube-audit-admin is kube-audit without reads."""
LOG_DAYS: Final = (30, 730)
"""Shortest and longest retention of a workspace, in days. The first 31 are free
(learn.microsoft.com/azure/azure-monitor/logs/data-retention-configure)."""


def gpu_nodes(*, taint: bool, spot: bool = False, pool: str | None = None) -> NodeGroup:
    """Return the nodes with GPUs.

    taint: the nodes have the GPU taint.
    spot: the nodes have the taint of spot machines.
    pool: only nodes of this pool. None for all pools.
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
    """Return the name of the identity that a namespace's pods use to mount volumes, at most LONGEST_IDENTITY long."""
    return f"{cluster}-in-{namespace}"


def workspace_name(cluster: str) -> str:
    """Return the name of a cluster's workspace: 4 to 63 letters, digits and hyphens."""
    return f"{cluster.replace('_', '-')[:58].strip('-')}-logs"
