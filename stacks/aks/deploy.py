"""Target `aks`: a cluster on Azure Kubernetes Service, and the platform on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup, Placement
from components.kubernetes.provider import kubernetes_provider
from components.nodes.placement import GPU_NODES, SYSTEM_NODES
from components.storage.storage_classes import FILES, FILES_NFS
from stacks import platform
from stacks.aks import infrastructure
from stacks.aks.layers import AksLayers
from stacks.aks.settings import AksSettings
from stacks.inputs import StackInputs
from stacks.layers.releases import Releases


def deploy(inputs: StackInputs[AksSettings], releases: Releases) -> Mapping[str, Any]:
    """Register what Azure gives and the platform on it; return the stack's outputs."""
    resolved = inputs.resolved
    azure = infrastructure.create(inputs.settings)
    cluster = Cluster(
        identifier=azure.identifier,
        provider=kubernetes_provider("cluster", kubeconfig=azure.kubeconfig, identifier=azure.identifier),
        kubernetes_version=resolved.kubernetes_version,
        pool=resolved.pool,
        placement=Placement(
            system=NodeGroup(node_selector=SYSTEM_NODES),
            gpus=NodeGroup(
                node_selector=GPU_NODES, tolerations=[GPU_TOLERATION] if inputs.settings.azure.gpu_pool.taint else []
            ),
        ),
        fabric=resolved.fabric,
        storage=StorageClasses(block="managed-csi-premium", files=FILES, logs=FILES_NFS),
        registry=azure.registry,
        load_balancer={"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
        deleted_with=azure.cluster,
        ready=azure.ready,
        gpus_ready=azure.pool,
    )
    stands = platform.install(inputs, releases, cluster, AksLayers(inputs, azure, cluster))
    return {**stands, "cluster": azure.identifier, "registry": azure.registry, "kubeconfig": azure.kubeconfig}
