"""The configuration of target `simulated`."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from components import names
from components.kubernetes.node_pool import GPU_TOLERATION, NodePool
from components.kubernetes.placement import NodeGroup
from components.nodes.simulated import GPU_LABEL, POOL_LABEL
from stacks.config.errors import ConfigError, Path
from stacks.settings import PlatformSettings, pools
from stacks.settings.gpu import ProvidedGpuSettings
from stacks.settings.kubernetes import KubernetesSettings
from stacks.settings.limits import MOST_GPUS, MOST_NODES
from stacks.settings.machines import MACHINES
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores, choice
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.pools import FurtherPoolSettings


class SimulatedPoolSettings(SettingsModel):
    """GPU nodes of one shape."""

    count: Annotated[int, Field(ge=1, le=MOST_NODES)] = 3
    """Number of nodes."""
    instance_type: Annotated[str, choice("instance type", tuple(MACHINES))] = next(iter(MACHINES))
    """Machine type that the nodes report."""
    gpus_per_node: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = None
    """GPUs of each node. Default: those of instanceType."""
    cpu: SomeCores | None = None
    """CPU cores of each node. Default: those of instanceType."""
    memory: SomeBytes | None = None
    """Memory of each node in bytes. Default: that of instanceType."""
    roce_per_node: Annotated[int, Field(ge=0, le=64)] = 0
    """Number of `nvidia.com/roce_gdr` devices of each node."""

    def pool(self, name: str = names.FLAVOR, *, alone: bool = True) -> NodePool:
        """Return the nodes as the layers see them. alone: it is the only pool, and needs no label."""
        shape = MACHINES[self.instance_type].shape(
            gpus=self.gpus_per_node,
            cpu=self.cpu,
            memory=self.memory,
            roce_devices=self.roce_per_node,
        )
        labels = GPU_LABEL if alone else {**GPU_LABEL, POOL_LABEL: name}
        return NodePool(
            name=name,
            nodes=NodeGroup(node_selector=labels, tolerations=[GPU_TOLERATION]),
            count=self.count,
            shape=shape,
        )


class MoreNodesSettings(SimulatedPoolSettings, FurtherPoolSettings):
    """GPU nodes of another shape or price. Their label `mlbatch/pool` has the pool's name."""


class NodesSettings(SimulatedPoolSettings):
    """The simulated GPU nodes."""

    more_pools: tuple[MoreNodesSettings, ...] = ()
    """More GPU node pools. Queues try these nodes first, then the pools in the order of the list. With more pools, the
    label `mlbatch/pool` of these nodes is `default-flavor`.
    """

    def pools(self) -> list[NodePool]:
        """Return all pools as the layers see them."""
        further = [pool.pool(pool.name, alone=False) for pool in self.more_pools]
        return [self.pool(alone=not further), *further]

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from pools.check((*path, "morePools"), self.more_pools)


class SimulatedSettings(PlatformSettings):
    """Configuration of a stack with simulated nodes, which need no operators for hardware."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    nodes: NodesSettings = NodesSettings()
    gpu: ProvidedGpuSettings = ProvidedGpuSettings()
    monitoring: MonitoringSettings = MonitoringSettings(enabled=False)
