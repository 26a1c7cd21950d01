"""What one node has, and what a pool of like nodes has together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from components import names
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.quantity import ZERO, Quantity

GPU_TAINT: Final[Mapping[str, str]] = {"key": names.GPU, "value": "present", "effect": "NoSchedule"}
"""Keeps pods that ask for no GPU off GPU nodes. Kueue's flavor gives admitted jobs the toleration."""

GPU_TOLERATION: Final[Mapping[str, str]] = {
    "key": GPU_TAINT["key"],
    "operator": "Exists",
    "effect": GPU_TAINT["effect"],
}
"""Lets pods onto nodes with that taint."""


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """One node's machine type and resources.

    gpu_product: the value that NVIDIA's GPU feature discovery gives the label `nvidia.com/gpu.product`.
    resources: amount of each of the platform's resources, as a pod can ask for it.
    """

    instance_type: str
    gpu_product: str
    resources: Mapping[str, Quantity]


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """Nodes of one shape, of which queues have quotas.

    name: of its flavor. nodes: how pods get there.
    count: how many there can be. minimum: how many there are at least where an autoscaler adds and removes them; None
    where all are always there.
    is_read: its shape is what the nodes have at the moment, one that is broken too, and not what they should have.
    reserved: amounts of each node that the pods of its DaemonSets ask for; a resource left out is all for jobs.
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
        """How many nodes there are at least, unless some are lost."""
        return self.count if self.minimum is None else self.minimum

    @property
    def for_jobs(self) -> Mapping[str, Quantity]:
        """Amount of each resource of one node that is left for jobs, so that one that asks for all of it is placed."""
        amounts = self.shape.resources.items()
        return {resource: max(amount - self.reserved.get(resource, ZERO), ZERO) for resource, amount in amounts}

    @property
    def resources(self) -> Mapping[str, Quantity]:
        """Amount of each resource that the nodes have together for jobs, which quotas divide."""
        return {resource: amount * self.count for resource, amount in self.for_jobs.items()}

    @property
    def allocatable(self) -> Mapping[str, Quantity]:
        """Amount of each resource that the nodes have together for all pods."""
        return {resource: amount * self.count for resource, amount in self.shape.resources.items()}
