"""Labels with the physical host of a node, for reports of hardware faults to Azure."""

from dataclasses import dataclass
from typing import Final

import pulumi

from components.azure.agents import hyperv_labels
from components.kubernetes.placement import NodeGroup
from components.kubernetes.resources import Resources
from components.nodes import node_agent
from components.nodes.node_agent import Agent

NAME: Final = "node-labeler"

RESOURCES: Final = Resources(cpu_request="10m", memory_request="32Mi", cpu_limit="200m", memory_limit="128Mi")


@dataclass(frozen=True, kw_only=True)
class NodeLabelerArgs:
    """The arguments of the labeler.

    namespace: must allow pods that mount the node's folders.
    image: an image with Python 3.11 or later. No packages are needed.
    nodes: the nodes with GPUs.
    """

    namespace: pulumi.Input[str]
    image: str
    nodes: NodeGroup


class NodeLabeler(pulumi.ComponentResource):
    """Run the labeler on GPU nodes: `hyperv/<key>` for each pair that Hyper-V passes to the machine, and `ib/pkey`.

    Azure's support asks for `hyperv/PhysicalHostName` of a broken machine (edwardsp/ai-on-aks, readme.md). The labeler
    reads the pairs every five minutes, because a node can move to another host. It may write only these labels, and
    only on its own node.
    """

    def __init__(self, name: str, args: NodeLabelerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NodeLabeler", name, None, opts)
        node_agent.install(node_labeler(args), self)
        self.register_outputs({})


def node_labeler(args: NodeLabelerArgs) -> Agent:
    """Return the agent. It is unprivileged and can read the folder of pairs."""
    return Agent(
        name=NAME,
        namespace=args.namespace,
        image=args.image,
        module="components.azure.agents.hyperv_labels",
        arguments=(),
        port=hyperv_labels.PORT,
        labels=(hyperv_labels.PREFIX, hyperv_labels.PARTITION),
        nodes=args.nodes,
        resources=RESOURCES,
        folders=(str(hyperv_labels.POOL.parent),),
    )
