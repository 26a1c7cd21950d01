"""The configuration of target `simulated`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from components.kubernetes.node_pool import NodePool
from stacks.settings import PlatformSettings
from stacks.settings.gpu import ProvidedGpuSettings
from stacks.settings.kubernetes import KubernetesSettings
from stacks.settings.limits import MOST_GPUS, MOST_NODES
from stacks.settings.machines import MACHINES
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores, choice
from stacks.settings.monitoring import MonitoringSettings


class NodesSettings(SettingsModel):
    """The GPU nodes."""

    count: Annotated[int, Field(ge=1, le=MOST_NODES)] = 3
    """How many nodes."""
    instance_type: Annotated[str, choice("instance type", tuple(MACHINES))] = next(iter(MACHINES))
    """Machine type that they show."""
    gpus_per_node: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = None
    """GPUs of one node, in place of the instance type's own."""
    cpu: SomeCores | None = None
    """CPU cores of one node, in place of the instance type's own."""
    memory: SomeBytes | None = None
    """Bytes of memory of one node, in place of the instance type's own."""
    roce_per_node: Annotated[int, Field(ge=0, le=64)] = 0
    """`nvidia.com/roce_gdr` devices of one node."""

    def pool(self) -> NodePool:
        """Return the nodes as the layers see them."""
        shape = MACHINES[self.instance_type].shape(
            gpus=self.gpus_per_node,
            cpu=self.cpu,
            memory=self.memory,
            roce_devices=self.roce_per_node,
        )
        return NodePool(count=self.count, shape=shape)


class SimulatedSettings(PlatformSettings):
    """Everything that the configuration of a stack with simulated nodes says. Their hardware needs no operator."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    nodes: NodesSettings = NodesSettings()
    gpu: ProvidedGpuSettings = ProvidedGpuSettings()
    monitoring: MonitoringSettings = MonitoringSettings(enabled=False)
