"""The levels for Kueue's topology-aware scheduling.

With them, Kueue admits a job only if nodes have room for all its pods, and writes the nodes' names into the pods. It
places a job's pods on as few nodes as possible, and a small job where the least room remains. It also counts pods
outside queues. Kueue v0.19: `apis/kueue/v1beta2/topology_types.go`, gates TopologyAwareScheduling and TASProfileMixed.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.objects import with_pod_metadata

TOPOLOGY: Final = "nodes"
_PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"


@dataclass(frozen=True, kw_only=True)
class TopologyArgs:
    """levels: labels of nodes above the node itself, from the widest part of the network to the narrowest."""

    levels: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Name of the Topology. It changes with the levels, because Kueue rejects a change of levels."""
        if not self.levels:
            return TOPOLOGY
        return f"{TOPOLOGY}-{hashlib.sha256(json.dumps(list(self.levels)).encode()).hexdigest()[:8]}"


class Topology(pulumi.ComponentResource):
    """Create the Topology that flavors refer to. Depends on Kueue."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: TopologyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Topology", name, None, opts)
        self.name = Manifest(args.name, topology(args), pulumi.ResourceOptions(parent=self)).object_name
        self.register_outputs({"name": self.name})


def topology(args: TopologyArgs) -> Document:
    """Return the Topology."""
    return {
        "apiVersion": names.KUEUE_API,
        "kind": "Topology",
        "metadata": {"name": args.name},
        "spec": {"levels": [{"nodeLabel": label} for label in (*args.levels, names.HOST)]},
    }


def narrowest(levels: Sequence[str]) -> str | None:
    """Return the last level, or None without levels."""
    return levels[-1] if levels else None


def preference(level: str | None) -> dict[str, str]:
    """Return the annotation for pods that Kueue places in one part of the network at this level, or a wider one."""
    return {_PREFERRED: level} if level is not None else {}


def near(level: str | None, job: Document) -> Document:
    """Return a Job whose pods have that annotation."""
    return with_pod_metadata(job, "annotations", preference(level)) if level is not None else job
