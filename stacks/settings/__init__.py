"""A stack's settings: one typed tree, and the only place where defaults stand.

The tree mirrors the stack's configuration: each class is a section, each field a key in camelCase. Types are strict (a
boolean is no number, a number no string) and unknown keys are errors. What no single field shows is checked in `rules`.
"""

from __future__ import annotations

from enum import StrEnum

from components.kubernetes.node_pool import NodePool
from components.nodes.network_operator import DevicePlugin
from stacks.settings.azure import AzureSettings
from stacks.settings.cluster import KubernetesSettings, NodesSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.mirror import MirrorSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.section import Section
from stacks.settings.storage import StorageSettings
from stacks.settings.tenancy import QueueingSettings, TeamSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import WorkloadsSettings


class Target(StrEnum):
    """Where the platform lands."""

    SIMULATED = "simulated"
    AKS = "aks"


class Settings(Section):
    """Everything that a stack's configuration says.

    Some sections mean something on one target only, and must not stand in the configuration of another: kubernetes and
    nodes on `simulated`; azure, gpu, storage, volcano, health, workloads and monitoring on `aks`.
    """

    target: Target
    kubernetes: KubernetesSettings = KubernetesSettings()
    nodes: NodesSettings = NodesSettings()
    azure: AzureSettings | None = None
    gpu: GpuSettings = GpuSettings()
    storage: StorageSettings = StorageSettings()
    queueing: QueueingSettings = QueueingSettings()
    teams: tuple[TeamSettings, ...] = ()
    volcano: VolcanoSettings = VolcanoSettings()
    health: HealthSettings = HealthSettings()
    workloads: WorkloadsSettings = WorkloadsSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    mirror: MirrorSettings = MirrorSettings()
    samples: SamplesSettings = SamplesSettings()

    @property
    def pool(self) -> NodePool:
        """The GPU nodes, of whichever target."""
        return self.nodes.pool() if self.azure is None else gpu_pool(self.azure, self.gpu)


def gpu_pool(azure: AzureSettings, gpu: GpuSettings) -> NodePool:
    """Return the GPU nodes on AKS. Ports are counted one by one where the SR-IOV device plugin hands them out."""
    counted = gpu.fabric.enabled and gpu.fabric.device_plugin is DevicePlugin.SRIOV
    return azure.pool(infiniband=counted)
