"""Scratch space on the local NVMe disks of GPU nodes: a folder for each pod, removed after it (edwardsp/ai-on-aks)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import pulumi

from components.kubernetes.placement import NodeGroup
from components.kubernetes.programs import OWN_POD
from components.kubernetes.resources import Resources
from components.kubernetes.volumes import Volume, host_folder
from components.nodes import node_agent
from components.nodes.agents import nvme_scratch as agent
from components.nodes.node_agent import Agent

NAME: Final = "local-nvme-scratch"
FOLDER: Final = "/pv-disks/scratch"
"""Where the space is mounted on a node by default. Pods mount a folder of it by `volume`, on nodes that are `READY`."""

POOL_LABEL: Final[Mapping[str, str]] = {"local-nvme-scratch": "true"}
"""Of a node pool whose disks are to be used: what the administrator says of it, not that the space is there."""

READY: Final[Mapping[str, str]] = {agent.LABEL: agent.READY}
"""Of a node on which the space is mounted, as long as it is."""

RESOURCES: Final = Resources(cpu_request="20m", memory_request="48Mi", cpu_limit="500m", memory_limit="256Mi")
_PARTS: Final = ("commands", "local_disks", "scratch_folders", "scratch_space")
"""The modules beside the agent's own that are mounted with it."""


class Filesystem(StrEnum):
    """What the disks are formatted with."""

    EXT4 = "ext4"
    XFS = "xfs"


@dataclass(frozen=True, kw_only=True)
class NvmeScratchArgs:
    """namespace: must allow privileged pods. image: a Python 3.11 or later with util-linux, without packages.

    folder: where the disks are mounted. nodes: those whose local disks are to be used. disk_model: models of local
    disks, as a regular expression.
    """

    namespace: pulumi.Input[str]
    image: str
    folder: str = FOLDER
    filesystem: Filesystem = Filesystem.EXT4
    nodes: NodeGroup
    disk_model: str
    resources: Resources = RESOURCES


class NvmeScratch(pulumi.ComponentResource):
    """Keep the local disks of each node of a pool mounted as one file system, and say on the node when they are.

    Its pods are root on their node, for only that can make arrays and mount them; they may write one label of it. They
    remove the folders of pods that have ended. What is on the disks is lost with the node, and no pod's part of them is
    limited.
    """

    def __init__(self, name: str, args: NvmeScratchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NvmeScratch", name, None, opts)
        node_agent.install(scratch(args), self)
        self.register_outputs({})


def volume(folder: str, path: str) -> Volume:
    """Return a pod's own folder of the space. folder: where that is mounted. path: in the container.

    The kubelet makes it, with the space's own mode (kubernetes/kubernetes, pkg/kubelet/kubelet_pods.go, makeMounts): a
    pod that is not root writes there, and sees the folder of no other.
    """
    return replace(host_folder("scratch", folder, path), sub_path_variable=OWN_POD)


def scratch(args: NvmeScratchArgs) -> Agent:
    """Return the agent, which works with the node's own programs."""
    return Agent(
        name=NAME,
        namespace=args.namespace,
        image=args.image,
        module="components.nodes.agents.nvme_scratch",
        shared=tuple(f"components.nodes.agents.{each}" for each in _PARTS),
        arguments=(args.folder, args.filesystem.value, args.disk_model),
        port=agent.PORT,
        labels=(agent.LABEL,),
        nodes=args.nodes,
        resources=args.resources,
        privileged=True,
        variables=(OWN_POD,),
    )
