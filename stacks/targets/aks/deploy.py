"""Target `aks`: a cluster on Azure Kubernetes Service, and the platform on it."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.azure import aks
from components.azure.storage_classes import FILES, FILES_NFS
from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.placement import Placement
from components.kubernetes.provider import kubernetes_provider
from stacks import platform
from stacks.config.inputs import StackInputs
from stacks.layers.releases import Releases
from stacks.targets.aks import infrastructure
from stacks.targets.aks.layers import AksLayers
from stacks.targets.aks.settings import AksSettings


def deploy(inputs: StackInputs[AksSettings], releases: Releases) -> Mapping[str, Any]:
    """Register what Azure gives and the platform on it; return the stack's outputs."""
    resolved = inputs.resolved
    azure = infrastructure.create(inputs.settings)
    cluster = Cluster(
        provider=kubernetes_provider(
            "cluster",
            kubeconfig=azure.kubeconfig,
            identifier=azure.identifier,
            limits=inputs.settings.kubernetes.client.limits,
            opts=pulumi.ResourceOptions(replace_with=[azure.cluster], deleted_with=azure.cluster),
        ),
        pools=resolved.pools,
        placement=Placement(system=aks.SYSTEM_NODES, gpus=resolved.gpu_nodes),
        fabric=resolved.fabric,
        storage=StorageClasses(block=aks.BLOCK_CLASS, files=FILES, logs=FILES_NFS),
        registry=azure.registry,
        has_admission_policies=resolved.has_admission_policies,
        load_balancer=aks.INTERNAL_LOAD_BALANCER,
        made_by=azure.cluster,
        ready=azure.ready,
        gpus_ready=azure.pool,
    )
    stands = platform.install(inputs, releases, cluster, AksLayers(inputs, azure, cluster))
    return {**stands, "cluster": azure.identifier, "registry": azure.registry, "kubeconfig": azure.kubeconfig}
