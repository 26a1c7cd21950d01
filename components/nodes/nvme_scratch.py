"""Scratch space on local NVMe disks of GPU nodes: a folder for each pod, deleted after it (edwardsp/ai-on-aks)."""

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
"""Default path of the space on a node. Pods mount a folder of it with `volume`, on nodes with the label `READY`."""

POOL_LABEL: Final[Mapping[str, str]] = {"local-nvme-scratch": "true"}
"""Label of node pools whose disks are used. The administrator sets it. It does not mean that the space is ready."""

READY: Final[Mapping[str, str]] = {agent.LABEL: agent.READY}
"""Label of a node while the space is mounted there."""

RESOURCES: Final = Resources(cpu_request="20m", memory_request="48Mi", cpu_limit="500m", memory_limit="256Mi")
_PARTS: Final = ("commands", "local_disks", "scratch_folders", "scratch_space")
"""Modules that are mounted with the agent's own."""


class Filesystem(StrEnum):
    """File system type of the disks."""

    EXT4 = "ext4"
    XFS = "xfs"


@dataclass(frozen=True, kw_only=True)
class NvmeScratchArgs:
    """The arguments of the scratch space.

    namespace: must allow privileged pods.
    image: an image with Python 3.11 or later and util-linux. No packages are needed.
    folder: where the disks are mounted.
    nodes: nodes whose local disks are used.
    disk_model: regular expression for the models of local disks.
    """

    namespace: pulumi.Input[str]
    image: str
    folder: str = FOLDER
    filesystem: Filesystem = Filesystem.EXT4
    nodes: NodeGroup
    disk_model: str


class NvmeScratch(pulumi.ComponentResource):
    """Mount the local disks of each node of a pool as one file system, and label the node while they are mounted.

    Its pods are root on their node, because creating arrays and mounting them requires that. They may write one label
    of the node. They delete the folders of pods that have ended. The data is lost with the node, and the share of a pod
    is not limited.
    """

    def __init__(self, name: str, args: NvmeScratchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NvmeScratch", name, None, opts)
        node_agent.install(scratch(args), self)
        self.register_outputs({})


def volume(folder: str, path: str) -> Volume:
    """Return a pod's own folder of the space. folder: the space's path on the node. path: in the container.

    The kubelet creates the folder with the mode of the space (kubernetes/kubernetes, pkg/kubelet/kubelet_pods.go,
    makeMounts). A pod that is not root can write there, and cannot see folders of other pods.
    """
    return replace(host_folder("scratch", folder, path), sub_path_variable=OWN_POD)


def scratch(args: NvmeScratchArgs) -> Agent:
    """Return the agent. It uses the node's own programs."""
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
        resources=RESOURCES,
        privileged=True,
        variables=(OWN_POD,),
    )
