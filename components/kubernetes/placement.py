"""The nodes of a cluster that the platform's pods run on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """A group of nodes, and how pods are scheduled on it.

    node_selector: labels of all its nodes. Empty selects all nodes.
    tolerations: of the taints of its nodes.
    any_of: sets of more labels. Each node has one of the sets. Empty if node_selector is sufficient.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    any_of: Sequence[Mapping[str, str]] = ()
    tolerations: Sequence[Mapping[str, str]] = ()

    def body(self, more: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Return the fields of a pod's `spec`, without empty ones. more: more tolerations."""
        selector = {"nodeSelector": dict(self.node_selector)} if self.node_selector else {}
        tolerations = [dict(toleration) for toleration in (*self.tolerations, *more)]
        return {**selector, **self._affinity(), **({"tolerations": tolerations} if tolerations else {})}

    def _affinity(self) -> dict[str, Any]:
        if not self.any_of:
            return {}
        terms = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]}
            for labels in self.any_of
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": required}}

    def tolerating(self, taints: Iterable[str]) -> NodeGroup:
        """Return the same nodes for pods that also tolerate these taints, by key, with any effect."""
        return replace(self, tolerations=[*self.tolerations, *({"key": key, "operator": "Exists"} for key in taints)])


def union(groups: Sequence[NodeGroup]) -> NodeGroup:
    """Return the nodes of all groups. The pods tolerate the taints of all groups."""
    first, *others = groups
    if not others:
        return first
    shared = {
        key: value
        for key, value in first.node_selector.items()
        if all(each.node_selector.get(key) == value for each in others)
    }
    own = [{key: value for key, value in each.node_selector.items() if key not in shared} for each in groups]
    tolerations: list[Mapping[str, str]] = []
    for toleration in (each for group in groups for each in group.tolerations):
        if toleration not in tolerations:
            tolerations.append(toleration)
    return NodeGroup(node_selector=shared, any_of=own if all(own) else (), tolerations=tolerations)


ANYWHERE: Final = NodeGroup()
"""All nodes without taints."""

RESCHEDULED: Final = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    for state in ("not-ready", "unreachable")
)
"""Tolerations of a controller that leaves a failed node after 30 seconds. The default is five minutes (admission plugin
DefaultTolerationSeconds)."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where pods run.

    system: nodes for the platform's controllers and services.
    gpus: the nodes with GPUs.
    """

    system: NodeGroup = ANYWHERE
    gpus: NodeGroup = ANYWHERE
