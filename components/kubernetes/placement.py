"""On which nodes of a cluster the platform's pods run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Some of a cluster's nodes, as pods get there.

    node_selector: labels that they all have; empty for any node. tolerations: of the taints that they have.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()

    def body(self) -> dict[str, Any]:
        """Return the part of a pod's `spec` that says so; what it has none of is left out."""
        selector = {"nodeSelector": dict(self.node_selector)} if self.node_selector else {}
        tolerations = [dict(toleration) for toleration in self.tolerations]
        return {**selector, **({"tolerations": tolerations} if tolerations else {})}


ANYWHERE: Final = NodeGroup()
"""Every node without taints."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """system: for the platform's own controllers and services. gpus: the nodes with GPUs."""

    system: NodeGroup = ANYWHERE
    gpus: NodeGroup = ANYWHERE
