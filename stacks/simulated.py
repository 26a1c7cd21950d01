"""Target `simulated`: the platform on a cluster whose GPU nodes are played by KWOK. Reads from the ground up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.cluster import Capabilities, Cluster, connect
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
        provider=connect("cluster", kubeconfig=kubeconfig.contents, identifier=kubeconfig.cluster),
        capabilities=Capabilities(gpu_taint=True),
        pool=settings.nodes.pool(),
    )

    def on(*needs: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(providers=[cluster.provider], depends_on=list(needs))

    # Nodes
    nodes = SimulatedNodes("nodes", SimulatedNodesArgs(pool=cluster.pool), on())

    # Scheduling, queueing, tenancy, the sample job
    if settings.queueing.enabled:
        batch.install(settings, mirror, files, cluster, on, nodes.nodes)

    return outputs(settings)
