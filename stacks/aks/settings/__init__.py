"""The configuration of target `aks`."""

from __future__ import annotations

from stacks.aks.settings.azure import AzureSettings
from stacks.aks.settings.health import AksHealthSettings
from stacks.aks.settings.storage import StorageSettings
from stacks.settings import PlatformSettings
from stacks.settings.gpu import GpuSettings, ScratchSettings


class AksGpuSettings(GpuSettings):
    """Drivers and device plugins of the GPU nodes, and what says where they are."""

    node_labels: bool = True
    """Label nodes with their physical host."""
    nvme_scratch: ScratchSettings = ScratchSettings(enabled=True)


class AksSettings(PlatformSettings):
    """Everything that the configuration of a stack on Azure Kubernetes Service says."""

    azure: AzureSettings
    gpu: AksGpuSettings = AksGpuSettings()
    storage: StorageSettings = StorageSettings()
    health: AksHealthSettings = AksHealthSettings()
