"""Labels that tell which physical host a node runs on, for reports of hardware faults to Azure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.resources import Resources
from components.nodes import node_agent
from components.nodes.agents import hyperv_labels
from components.nodes.node_agent import Agent
from components.nodes.placement import GPU_NODES

NAME: Final = "node-labeler"

RESOURCES: Final = Resources(cpu_request="10m", memory_request="32Mi", cpu_limit="200m", memory_limit="128Mi")


@dataclass(frozen=True, kw_only=True)
class NodeLabelerArgs:
    """namespace: must allow pods that mount the node's folders. image: a Python 3.11 or later, without packages."""

    namespace: pulumi.Input[str]
    image: str
    node_selector: Mapping[str, str] = field(default_factory=lambda: dict(GPU_NODES))
    tolerations: Sequence[Mapping[str, str]] = (GPU_TOLERATION,)
    resources: Resources = RESOURCES


class NodeLabeler(pulumi.ComponentResource):
    """Run the labeler on GPU nodes: `hyperv/<key>` for each pair that Hyper-V passes to the machine, and `ib/pkey`.

    `hyperv/PhysicalHostName` is what Azure's support asks for when a machine is broken (edwardsp/ai-on-aks, readme.md).
    Reads again every five minutes, for a node can move to another host. May write those labels of its own node only.
    """

    def __init__(self, name: str, args: NodeLabelerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NodeLabeler", name, None, opts)
        node_agent.install(node_labeler(args), self)
        self.register_outputs({})


def node_labeler(args: NodeLabelerArgs) -> Agent:
    """Return the agent: nobody, who can read the folder of pairs."""
    return Agent(
        name=NAME,
        namespace=args.namespace,
        image=args.image,
        module="components.nodes.agents.hyperv_labels",
        arguments=(),
        port=hyperv_labels.PORT,
        labels=(hyperv_labels.PREFIX, hyperv_labels.PARTITION),
        node_selector=args.node_selector,
        tolerations=args.tolerations,
        resources=args.resources,
        folders=(str(hyperv_labels.POOL.parent),),
    )
