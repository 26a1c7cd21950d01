"""Target `simulated`: a cluster whose GPU nodes KWOK simulates."""

from typing import Final

from components.kubernetes.fabric import Fabric
from components.storage.simulated import CLASS
from stacks.targets.simulated.settings import NodesSettings, SimulatedSettings
from stacks.targets.spec import TargetSpec, from_section, shared_sections

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
    pools=from_section(NodesSettings, NodesSettings.pools, ()),
    further=from_section(NodesSettings, lambda nodes: nodes.more_pools, ()),
    fabric=lambda *_: Fabric(),  # simulated jobs do not use the network between nodes
    shared_files=lambda _: CLASS,
)
