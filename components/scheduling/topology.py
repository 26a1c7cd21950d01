"""The levels at which Kueue's topology-aware scheduling looks for room.

Kueue then admits a job only where nodes have room for each of its pods, and writes the node's name into the pods. It
puts a job's pods on as few nodes as it can, and a small job where it leaves least room over. Pods of no queue count as
well. Kueue v0.19: `apis/kueue/v1beta2/topology_types.go`, gates TopologyAwareScheduling and TASProfileMixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest

TOPOLOGY: Final = "nodes"


@dataclass(frozen=True, kw_only=True)
class TopologyArgs:
    """levels: labels of nodes from the widest part of the cluster to the narrowest, which is the node itself."""

    levels: Sequence[str] = (names.HOST,)


class Topology(pulumi.ComponentResource):
    """Create the Topology that flavors refer to. Depends on Kueue; its levels cannot be changed in place."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: TopologyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Topology", name, None, opts)
        options = pulumi.ResourceOptions(parent=self, replace_on_changes=["spec"], delete_before_replace=True)
        self.name = Manifest(TOPOLOGY, topology(args), options).object_name
        self.register_outputs({"name": self.name})


def topology(args: TopologyArgs) -> Document:
    """Return the Topology."""
    return {
        "apiVersion": names.KUEUE_API,
        "kind": "Topology",
        "metadata": {"name": TOPOLOGY},
        "spec": {"levels": [{"nodeLabel": label} for label in args.levels]},
    }
