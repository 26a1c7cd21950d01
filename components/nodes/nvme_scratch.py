"""Scratch space on the local NVMe disks of GPU nodes, shared by all pods of a node (edwardsp/ai-on-aks)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pulumi

from components.kubernetes.placement import NodeGroup
from components.kubernetes.resources import Resources
from components.nodes import node_agent
from components.nodes.agents import nvme_scratch as agent
from components.nodes.node_agent import Agent

NAME: Final = "local-nvme-scratch"
FOLDER: Final = "/pv-disks/scratch"
"""Where the space is mounted on a node. Pods mount it as hostPath of type Directory, and select nodes by `READY`."""

POOL_LABEL: Final[Mapping[str, str]] = {"local-nvme-scratch": "true"}
"""Of a node pool whose disks are to be used: what the administrator says of it, not that the space is there."""

READY: Final[Mapping[str, str]] = {agent.LABEL: agent.READY}
"""Of a node on which the space is mounted, as long as it is."""

RESOURCES: Final = Resources(cpu_request="20m", memory_request="48Mi", cpu_limit="500m", memory_limit="256Mi")


class Filesystem(StrEnum):
    """What the disks are formatted with."""

    EXT4 = "ext4"
    XFS = "xfs"


@dataclass(frozen=True, kw_only=True)
class NvmeScratchArgs:
    """namespace: must allow privileged pods. image: a Python 3.11 or later with util-linux, without packages.

    nodes: those whose local disks are to be used. disk_model: models of local disks, as a regular expression.
    """

    namespace: pulumi.Input[str]
    image: str
    filesystem: Filesystem = Filesystem.EXT4
    nodes: NodeGroup
    disk_model: str
    resources: Resources = RESOURCES


class NvmeScratch(pulumi.ComponentResource):
    """Keep the local disks of each node of a pool mounted as one file system, and say on the node when they are.

    Its pods are root on their node, for only that can make arrays and mount them; they may write one label of it. What
    is on the disks is lost with the node, and no pod's share is limited.
    """

    def __init__(self, name: str, args: NvmeScratchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NvmeScratch", name, None, opts)
        node_agent.install(scratch(args), self)
        self.register_outputs({})


def scratch(args: NvmeScratchArgs) -> Agent:
    """Return the agent, which works with the node's own programs."""
    return Agent(
        name=NAME,
        namespace=args.namespace,
        image=args.image,
        module="components.nodes.agents.nvme_scratch",
        arguments=(FOLDER, args.filesystem.value, args.disk_model),
        port=agent.PORT,
        labels=(agent.LABEL,),
        nodes=args.nodes,
        resources=args.resources,
        privileged=True,
    )
