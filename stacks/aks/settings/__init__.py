"""The configuration of target `aks`."""

from __future__ import annotations

from components.azure.aks import LOCAL_DISKS
from stacks.aks.settings.azure import AzureSettings
from stacks.aks.settings.health import AksHealthSettings
from stacks.aks.settings.storage import StorageSettings
from stacks.settings import PlatformSettings
from stacks.settings.gpu import DiskModel, GpuSettings, ScratchSettings


class AksScratchSettings(ScratchSettings):
    """A scratch file system on the local NVMe disks of each GPU node."""

    enabled: bool = True
    """Make the file system."""
    disk_model: DiskModel | None = LOCAL_DISKS
    """Models of these disks, as a regular expression; `lsblk --output NAME,MODEL` shows them. Others are left alone."""


class AksGpuSettings(GpuSettings):
    """Drivers and device plugins of the GPU nodes, and what says where they are."""

    node_labels: bool = True
    """Label nodes with their physical host."""
    nvme_scratch: AksScratchSettings = AksScratchSettings()


class AksSettings(PlatformSettings):
    """Everything that the configuration of a stack on Azure Kubernetes Service says."""

    azure: AzureSettings
    gpu: AksGpuSettings = AksGpuSettings()
    storage: StorageSettings = StorageSettings()
    health: AksHealthSettings = AksHealthSettings()
