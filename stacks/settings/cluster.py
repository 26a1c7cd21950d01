"""The cluster of target `simulated`, and its nodes."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.nodes.shapes import INSTANCE_TYPES, node_shape
from stacks.settings.section import Section, choice

MOST_NODES: Final = 1000
MOST_GPUS: Final = 16
"""GPUs in one machine: HGX and DGX systems have 8 or 16."""


class KubernetesSettings(Section):
    """The cluster to install on.

    kubeconfig: file, absolute, from the home folder (~) or from the project's folder; default $KUBECONFIG, else
        ~/.kube/config. context: in that file; default its current one.
    """

    kubeconfig: str | None = None
    context: str | None = None


class NodesSettings(Section):
    """The GPU nodes.

    gpus_per_node, cpu, memory: in place of the instance type's own. roce_per_node: `nvidia.com/roce_gdr` devices.
    """

    count: Annotated[int, Field(ge=1, le=MOST_NODES)] = 3
    instance_type: Annotated[str, choice("instance type", tuple(INSTANCE_TYPES))] = next(iter(INSTANCE_TYPES))
    gpus_per_node: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None
    roce_per_node: Annotated[int, Field(ge=0, le=64)] = 0

    def pool(self) -> NodePool:
        """Return the nodes as the layers see them."""
        shape = node_shape(
            INSTANCE_TYPES[self.instance_type],
            gpus=self.gpus_per_node,
            cpu=self.cpu,
            memory=self.memory,
            rdma_devices=self.roce_per_node,
        )
        return NodePool(count=self.count, shape=shape)
