"""The resources of a node, and of a pool of equal nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from components import names
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.quantity import ZERO, Quantity

GPU_TAINT: Final[Mapping[str, str]] = {"key": names.GPU, "value": "present", "effect": "NoSchedule"}
"""Keeps pods without GPUs off GPU nodes. Kueue's flavor gives admitted jobs the toleration."""

GPU_TOLERATION: Final[Mapping[str, str]] = {
    "key": GPU_TAINT["key"],
    "operator": "Exists",
    "effect": GPU_TAINT["effect"],
}
"""Allows pods on nodes with that taint."""


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """The machine type and the resources of a node.

    gpu_product: value of the label `nvidia.com/gpu.product`, which NVIDIA's GPU feature discovery sets.
    resources: amount of each of the platform's resources that pods can request.
    """

    instance_type: str
    gpu_product: str
    resources: Mapping[str, Quantity]


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """Nodes of one shape that queues have quotas for.

    name: of its flavor.
    nodes: selector and tolerations for pods.
    count: the largest number of nodes.
    minimum: the smallest number of nodes with an autoscaler. None if the number is fixed.
    is_read: the shape is the nodes' current state, which may include broken nodes, and not their specification.
    reserved: amounts of each node that pods of DaemonSets request. Jobs get all of a resource that is omitted.
    """

    name: str = names.FLAVOR
    nodes: NodeGroup = ANYWHERE
    count: int
    shape: NodeShape
    minimum: int | None = None
    is_read: bool = False
    reserved: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def least(self) -> int:
        """The smallest number of nodes, unless some are lost."""
        return self.count if self.minimum is None else self.minimum

    @property
    def for_jobs(self) -> Mapping[str, Quantity]:
        """Amount of each resource of a node that jobs can request. A job that requests all of it fits on the node."""
        amounts = self.shape.resources.items()
        return {resource: max(amount - self.reserved.get(resource, ZERO), ZERO) for resource, amount in amounts}

    @property
    def resources(self) -> Mapping[str, Quantity]:
        """Amount of each resource of all nodes together that jobs can request. Quotas divide it."""
        return {resource: amount * self.count for resource, amount in self.for_jobs.items()}

    @property
    def allocatable(self) -> Mapping[str, Quantity]:
        """Amount of each resource of all nodes together for all pods."""
        return {resource: amount * self.count for resource, amount in self.shape.resources.items()}
