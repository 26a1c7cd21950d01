"""Target `simulated`: what everything else asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.storage.simulated import CLASS
from stacks.derived.partial import PartialSettings
from stacks.settings.pools import FurtherPoolSettings
from stacks.targets.simulated.settings import NodesSettings, SimulatedSettings
from stacks.targets.spec import TargetSpec

if TYPE_CHECKING:
    from stacks.config.inputs import StackInputs
    from stacks.layers.releases import Releases


class Simulated(TargetSpec[SimulatedSettings]):
    """A cluster whose GPU nodes KWOK simulates."""

    name = "simulated"
    summary = "an existing cluster, with GPU nodes that KWOK simulates"
    settings = SimulatedSettings
    sections = (
        "kubernetes",
        "nodes",
        "scheduling",
        "queueing",
        "tenancy",
        "teams",
        "recovery",
        "workloads",
        "mirror",
        "samples",
    )
    count_key = ("nodes", "count")
    pools_key = ("nodes", "morePools")
    reserved: ClassVar[Mapping[str, Quantity]] = {}  # nothing but jobs runs there
    has_kubeconfig = True
    has_load_balancers = False
    has_volumes = False

    def pools(self, partial: PartialSettings) -> Sequence[NodePool]:
        """Return the simulated nodes."""
        nodes = partial.section(NodesSettings)
        return nodes.pools() if nodes is not None else ()

    def further(self, partial: PartialSettings) -> Sequence[FurtherPoolSettings]:
        """Return the simulated pools behind the first."""
        nodes = partial.section(NodesSettings)
        return nodes.more_pools if nodes is not None else ()

    def shared_files(self, settings: SimulatedSettings) -> str:
        """Return the class of the nodes' volumes, which hold nothing."""
        return CLASS

    def fabric(self, partial: PartialSettings, pool: NodePool) -> Fabric:
        """Return no network: nothing that runs there uses one."""
        return Fabric()

    def deploy(self, inputs: StackInputs[SimulatedSettings], releases: Releases) -> Mapping[str, Any]:
        """Register the platform and its nodes."""
        from stacks.targets.simulated.deploy import deploy

        return deploy(inputs, releases)


TARGET: Final = Simulated()
