"""Target `simulated`: nodes and volumes for the cluster that the kubeconfig names, and the platform on it."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.placement import Placement
from components.kubernetes.provider import kubernetes_provider
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from components.storage.simulated import CLASS, SimulatedVolumes
from stacks import platform
from stacks.config.inputs import StackInputs
from stacks.layers.releases import Releases
from stacks.targets.simulated.settings import SimulatedSettings


def deploy(inputs: StackInputs[SimulatedSettings], releases: Releases) -> Mapping[str, Any]:
    """Register the nodes, their volumes' class and the platform; return the stack's outputs."""
    named, resolved = inputs.require_cluster(), inputs.resolved
    provider = kubernetes_provider(
        "cluster",
        kubeconfig=named.kubeconfig.contents,
        identifier=named.facts.identifier,
        limits=inputs.settings.kubernetes.client.limits,
    )
    own = pulumi.ResourceOptions(providers=[provider])
    first, *others = resolved.pools
    nodes = [SimulatedNodes("nodes", SimulatedNodesArgs(pool=first), own)]
    for pool in others:
        args = SimulatedNodesArgs(pool=pool, prefix=f"gpu-node-{pool.name}")
        nodes.append(SimulatedNodes(f"nodes-{pool.name}", args, own))
    there = [node for each in nodes for node in each.ready]
    after = pulumi.ResourceOptions(providers=[provider], depends_on=there)
    volumes = SimulatedVolumes("volumes", after)
    cluster = Cluster(
        provider=provider,
        pools=resolved.pools,
        placement=Placement(gpus=resolved.gpu_nodes),
        fabric=resolved.fabric,
        storage=StorageClasses(block=CLASS, files=CLASS, logs=CLASS),
        has_admission_policies=resolved.has_admission_policies,
        ready=[*there, *volumes.ready],
    )
    return platform.install(inputs, releases, cluster)
