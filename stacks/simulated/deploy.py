"""Target `simulated`: nodes for the cluster that the kubeconfig names, and the platform on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.cluster import Cluster
from components.kubernetes.placement import Placement
from components.kubernetes.provider import kubernetes_provider
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from stacks import platform
from stacks.inputs import StackInputs
from stacks.layers.releases import Releases
from stacks.simulated.settings import SimulatedSettings


def deploy(inputs: StackInputs[SimulatedSettings], releases: Releases) -> Mapping[str, Any]:
    """Register the nodes and the platform; return the stack's outputs."""
    named, pool = inputs.require_cluster(), inputs.resolved.pool
    provider = kubernetes_provider(
        "cluster",
        kubeconfig=named.kubeconfig.contents,
        identifier=named.facts.identifier,
        limits=inputs.settings.kubernetes.client.limits,
    )
    nodes = SimulatedNodes("nodes", SimulatedNodesArgs(pool=pool), pulumi.ResourceOptions(providers=[provider]))
    cluster = Cluster(
        provider=provider,
        pool=pool,
        placement=Placement(gpus=inputs.target.gpu_nodes(inputs.settings)),
        fabric=inputs.resolved.fabric,
        has_admission_policies=inputs.resolved.has_admission_policies,
        ready=nodes.ready,
    )
    return platform.install(inputs, releases, cluster)
