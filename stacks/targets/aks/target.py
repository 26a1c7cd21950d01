"""Target `aks`: what everything else asks of it. Its resources are in `deploy`, which alone loads Azure's SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from components.azure import catalogue, fabric
from components.kubernetes.fabric import NO_RDMA, Fabric
from components.kubernetes.node_pool import NodePool
from components.nodes.network_operator import DevicePlugin
from stacks.config.errors import ConfigError
from stacks.config.secrets import BLOB_SAS_TOKEN
from stacks.derived.partial import PartialSettings
from stacks.settings.pools import FurtherPoolSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks import validation
from stacks.targets.aks.settings import AksGpuSettings, AksSettings
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.health import AksHealthSettings
from stacks.targets.aks.settings.storage import StorageSettings
from stacks.targets.spec import Claim, Planned, TargetSpec

if TYPE_CHECKING:
    from stacks.config.inputs import StackInputs
    from stacks.layers.releases import Releases


class Aks(TargetSpec[AksSettings]):
    """Azure Kubernetes Service with GPU nodes."""

    name = "aks"
    cluster_env = "azure"
    summary = "an AKS cluster with NDv5 nodes, which the stack creates"
    settings = AksSettings
    sections = (
        "kubernetes",
        "azure",
        "gpu",
        "storage",
        "scheduling",
        "queueing",
        "tenancy",
        "teams",
        "recovery",
        "volcano",
        "health",
        "workloads",
        "monitoring",
        "mirror",
        "samples",
    )
    secrets = (BLOB_SAS_TOKEN,)
    count_key = ("azure", "gpuPool", "count")
    pools_key = ("azure", "moreGpuPools")
    registry_key = ("azure", "registry")
    namespaces = ("aks-", "app-routing-system", "calico-", "gatekeeper-system", "tigera-operator")
    version_path = ("azure", "kubernetesVersion")

    def pools(self, partial: PartialSettings) -> Sequence[NodePool]:
        """Return the pools: as many nodes as there can be, with ports where they are handed out one by one."""
        azure, gpu = partial.section(AzureSettings), partial.section(AksGpuSettings)
        if azure is None or gpu is None:
            return ()
        return azure.pools(infiniband=gpu.fabric.enabled and gpu.fabric.device_plugin is DevicePlugin.SRIOV)

    def further(self, partial: PartialSettings) -> Sequence[FurtherPoolSettings]:
        """Return the settings of the pools behind the first."""
        azure = partial.section(AzureSettings)
        return azure.more_gpu_pools if azure is not None else ()

    def fabric(self, partial: PartialSettings, pool: NodePool) -> Fabric:
        """Return the size's InfiniBand ports, by whichever plugin offers them."""
        azure, gpu = partial.section(AzureSettings), partial.section(AksGpuSettings)
        if azure is None or gpu is None or not gpu.fabric.enabled:
            return NO_RDMA
        ports = list(azure.gpu_pools.values())[partial.which].size.infiniband_ports
        shared = gpu.fabric.device_plugin is DevicePlugin.SHARED
        return fabric.fabric(ports, shared=shared) if ports else NO_RDMA

    def nodes_at_first(self, partial: PartialSettings, pool: NodePool) -> int:
        """Return the pool's count, which is less than there can be where it is scaled by itself."""
        azure = partial.section(AzureSettings)
        return azure.gpu_pool.count if azure is not None else pool.count

    def kubernetes_version(self, partial: PartialSettings) -> str | None:
        """Return the version that the settings ask for."""
        azure = partial.section(AzureSettings)
        return azure.kubernetes_version if azure is not None else None

    def registry(self, partial: PartialSettings) -> str | None:
        """Return the address of the stack's own registry."""
        azure = partial.section(AzureSettings)
        return f"{azure.registry.name.lower()}.azurecr.io" if azure is not None else None

    def shared_files(self, settings: AksSettings) -> str | None:
        """Return the class of SMB shares, which the stack makes."""
        from components.azure.storage_classes import FILES

        return FILES

    def node_check_image(self, partial: PartialSettings) -> str | None:
        """Return Azure's image of node checks, which has NCCL's tests too."""
        health = partial.section(AksHealthSettings)
        return catalogue.NODE_HEALTH_CHECKS.with_tag(health.node_check.image_tag) if health is not None else None

    def volumes(self, partial: PartialSettings) -> Mapping[str, str] | None:
        """Return the claims of blob containers by name, with their namespaces."""
        storage, workloads = partial.section(StorageSettings), partial.section(WorkloadsSettings)
        return {volume.name: volume.home(workloads) for volume in storage.volumes} if storage is not None else None

    def claims(self, partial: PartialSettings) -> Iterator[Claim]:
        """Yield the claims of blob containers."""
        storage, workloads = partial.section(StorageSettings), partial.section(WorkloadsSettings)
        for index, volume in enumerate(storage.volumes if storage is not None else ()):
            path = ("storage", "volumes", index, "capacity")
            yield Claim(path=path, namespace=volume.home(workloads), size=volume.capacity)

    def planned(self, partial: PartialSettings) -> Iterator[Planned]:
        """Yield what stands for blob containers; a volume's name goes on behind this with a digest of what it is."""
        storage, workloads = partial.section(StorageSettings), partial.section(WorkloadsSettings)
        for index, volume in enumerate(storage.volumes if storage is not None else ()):
            path, namespace = ("storage", "volumes", index, "name"), volume.home(workloads)
            yield Planned("PersistentVolume", "", f"{namespace}-{volume.name}", path)
            yield Planned("PersistentVolumeClaim", namespace, volume.name, path)
            if volume.uses_token:
                yield Planned("Secret", namespace, f"{volume.name}-sas-token", path)

    def check(self, partial: PartialSettings) -> Iterator[ConfigError]:
        """Yield what is wrong between its own sections and others."""
        return validation.check(partial)

    def warnings(self, partial: PartialSettings) -> Iterator[str]:
        """Yield what is allowed and most likely not meant."""
        return validation.warnings(partial)

    def deploy(self, inputs: StackInputs[AksSettings], releases: Releases) -> Mapping[str, Any]:
        """Register the platform on Azure."""
        from stacks.targets.aks.deploy import deploy

        return deploy(inputs, releases)


TARGET: Final = Aks()
