"""What one node has, and what a pool of like nodes has together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from components import names
from components.kubernetes.quantity import Quantity

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
    """Nodes of one shape."""

    count: int
    shape: NodeShape

    @property
    def resources(self) -> Mapping[str, Quantity]:
        """Amount of each resource that the nodes have together."""
        return {resource: amount * self.count for resource, amount in self.shape.resources.items()}
