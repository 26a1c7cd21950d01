"""Target `aks`: a cluster of Azure Kubernetes Service, which the stack makes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from components.azure import catalogue, fabric
from components.azure.storage_classes import FILES
from components.kubernetes.fabric import NO_RDMA, Fabric
from components.kubernetes.node_pool import NodePool
from components.nodes.network_operator import DevicePlugin
from stacks.config.secrets import BLOB_SAS_TOKEN
from stacks.config.sections import Sections
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks.settings import AksGpuSettings, AksSettings
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.health import AksHealthSettings
from stacks.targets.aks.settings.storage import StorageSettings
from stacks.targets.spec import Claim, Planned, TargetSpec, from_section, shared_sections


def _pools(sections: Sections) -> Sequence[NodePool]:
    """Return the pools: as many nodes as there can be, with ports where they are handed out one by one."""
    azure, gpu = sections.section(AzureSettings), sections.section(AksGpuSettings)
    if azure is None or gpu is None:
        return ()
    return azure.pools(infiniband=gpu.fabric.enabled and gpu.fabric.device_plugin is DevicePlugin.SRIOV)


def _fabric(sections: Sections, which: int) -> Fabric:
    """Return the size's InfiniBand ports, by whichever plugin offers them."""
    azure, gpu = sections.section(AzureSettings), sections.section(AksGpuSettings)
    if azure is None or gpu is None or not gpu.fabric.enabled:
        return NO_RDMA
    size = list(azure.gpu_pools.values())[which].size
    shared = gpu.fabric.device_plugin is DevicePlugin.SHARED
    return fabric.fabric(size.infiniband_ports, size.topology, shared=shared)


def _nodes_at_first(sections: Sections, pool: NodePool) -> int:
    """Return the pool's count, which is less than there can be where it is scaled by itself."""
    azure = sections.section(AzureSettings)
    return azure.gpu_pool.count if azure is not None else pool.count


def _volumes(sections: Sections) -> Mapping[str, str] | None:
    """Return the claims of blob containers and of other drivers by name, with their namespaces."""
    storage, workloads = sections.section(StorageSettings), sections.section(WorkloadsSettings)
    if storage is None:
        return None
    others = {claim.name: claim.namespace for claim in storage.claims}
    return {**{volume.name: volume.home(workloads) for volume in storage.volumes}, **others}


def _claims(sections: Sections) -> Iterator[Claim]:
    """Yield the claims of blob containers."""
    storage, workloads = sections.section(StorageSettings), sections.section(WorkloadsSettings)
    for index, volume in enumerate(storage.volumes if storage is not None else ()):
        path = ("storage", "volumes", index, "capacity")
        yield Claim(path=path, namespace=volume.home(workloads), size=volume.capacity)


def _planned(sections: Sections) -> Iterator[Planned]:
    """Yield the objects of blob containers, and the other claims. A volume's full name also has a digest."""
    storage, workloads = sections.section(StorageSettings), sections.section(WorkloadsSettings)
    for index, volume in enumerate(storage.volumes if storage is not None else ()):
        path, namespace = ("storage", "volumes", index, "name"), volume.home(workloads)
        yield Planned("PersistentVolume", "", f"{namespace}-{volume.name}", path)
        yield Planned("PersistentVolumeClaim", namespace, volume.name, path)
        if volume.uses_token:
            yield Planned("Secret", namespace, f"{volume.name}-sas-token", path)
    for index, claim in enumerate(storage.claims if storage is not None else ()):
        path = ("storage", "claims", index, "name")
        yield Planned("PersistentVolumeClaim", claim.namespace, claim.name, path)


AKS: Final = TargetSpec(
    name="aks",
    summary="an AKS cluster with NDv5 nodes, which the stack creates",
    settings=AksSettings,
    sections=("kubernetes", "azure", "gpu", "storage", *shared_sections("gpu", "nvshare", "mlops")),
    secrets=(BLOB_SAS_TOKEN,),
    count_key=("azure", "gpuPool", "count"),
    pools_key=("azure", "moreGpuPools"),
    registry_key=("azure", "registry"),
    namespaces=("aks-", "app-routing-system", "calico-", "gatekeeper-system", "tigera-operator"),
    version_path=("azure", "kubernetesVersion"),
    cluster_env="azure",
    pools=_pools,
    further=from_section(AzureSettings, lambda azure: azure.more_gpu_pools, ()),
    fabric=_fabric,
    nodes_at_first=_nodes_at_first,
    kubernetes_version=from_section(AzureSettings, lambda azure: azure.kubernetes_version, None),
    registry=from_section(AzureSettings, lambda azure: f"{azure.registry.name.lower()}.azurecr.io", None),
    shared_files=lambda _: FILES,
    node_check_image=from_section(
        AksHealthSettings, lambda health: catalogue.NODE_HEALTH_CHECKS.with_tag(health.node_check.image_tag), None
    ),
    volumes=_volumes,
    claims=_claims,
    planned=_planned,
)
