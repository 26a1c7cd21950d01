"""Target `simulated`: the platform on a cluster whose GPU nodes are played by KWOK. Reads from the ground up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.kubernetes.cluster import Cluster
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup, Placement
from components.kubernetes.provider import kubernetes_provider
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from stacks import batch
from stacks.load import Stack
from stacks.outputs import outputs


def deploy(stack: Stack) -> Mapping[str, Any]:
    """Register the platform and return the stack's outputs; raises ArtefactError before the first resource."""
    settings, mirror = stack.settings, stack.mirror
    files = batch.releases(settings, mirror)
    kubeconfig = stack.existing_cluster

    cluster = Cluster(
        identifier=kubeconfig.cluster,
        provider=kubernetes_provider("cluster", kubeconfig=kubeconfig.contents, identifier=kubeconfig.cluster),
        pool=settings.nodes.pool(),
        placement=Placement(gpus=NodeGroup(tolerations=[GPU_TOLERATION])),
    )

    # Nodes
    nodes = SimulatedNodes("nodes", SimulatedNodesArgs(pool=cluster.pool), cluster.options())

    # Scheduling, queueing, tenancy, the sample job
    if settings.queueing.enabled:
        batch.install(settings, mirror, files, cluster, cluster.options, [nodes])

    return outputs(settings)
