"""The configuration of target `aks`."""

from components.azure.aks import LOCAL_DISKS
from stacks.settings import PlatformSettings
from stacks.settings.gpu import DiskModel, GpuSettings, ScratchSettings
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.health import AksHealthSettings
from stacks.targets.aks.settings.storage import StorageSettings


class AksScratchSettings(ScratchSettings):
    """A scratch file system on the local NVMe disks of each GPU node."""

    enabled: bool = True
    """Create the file system."""
    disk_model: DiskModel | None = LOCAL_DISKS
    """Regular expression for the models of these disks, as `lsblk --output NAME,MODEL` prints them. Other disks are not
    touched.
    """


class AksGpuSettings(GpuSettings):
    """Drivers, device plugins and host labels of the GPU nodes."""

    node_labels: bool = True
    """Label each node with its physical host."""
    nvme_scratch: AksScratchSettings = AksScratchSettings()


class AksSettings(PlatformSettings):
    """Configuration of a stack on Azure Kubernetes Service."""

    azure: AzureSettings
    gpu: AksGpuSettings = AksGpuSettings()
    storage: StorageSettings = StorageSettings()
    health: AksHealthSettings = AksHealthSettings()
