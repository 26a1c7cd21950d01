"""Target `simulated`: a cluster whose GPU nodes KWOK simulates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.storage.simulated import CLASS
from stacks.config.sections import Sections
from stacks.settings.pools import FurtherPoolSettings
from stacks.targets.simulated.settings import NodesSettings, SimulatedSettings
from stacks.targets.spec import TargetSpec, shared_sections


def _pools(sections: Sections) -> Sequence[NodePool]:
    nodes = sections.section(NodesSettings)
    return nodes.pools() if nodes is not None else ()


def _further(sections: Sections) -> Sequence[FurtherPoolSettings]:
    nodes = sections.section(NodesSettings)
    return nodes.more_pools if nodes is not None else ()


SIMULATED: Final = TargetSpec(
    name="simulated",
    summary="an existing cluster, with GPU nodes that KWOK simulates",
    settings=SimulatedSettings,
    sections=("kubernetes", "nodes", *shared_sections("gpu", "nvshare", "volcano", "health", "monitoring", "mlops")),
    count_key=("nodes", "count"),
    pools_key=("nodes", "morePools"),
    reserved={},  # only jobs run there
    has_kubeconfig=True,
    has_load_balancers=False,
    has_volumes=False,
    pools=_pools,
    further=_further,
    fabric=lambda *_: Fabric(),  # simulated jobs do not use the network between nodes
    shared_files=lambda _: CLASS,
)
