"""The kinds of capacity that quotas are given in: one for each node pool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest


@dataclass(frozen=True, kw_only=True)
class FlavorArgs:
    """name: of the node pool. nodes: labels of the GPU nodes. tolerations: of their taints. Admitted jobs get both.

    topology: name of the Topology by which Kueue looks for room on the nodes and names them to a job's pods; it needs
        labels. None for quotas alone. levels: those of the Topology above the node.
    kueue_api: the API version of the flavor.
    """

    name: str = names.FLAVOR
    nodes: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    topology: pulumi.Input[str] | None = None
    levels: Sequence[str] = ()
    kueue_api: str = names.KUEUE_API


class Flavor(pulumi.ComponentResource):
    """Create the ResourceFlavor of a node pool. Depends on Kueue's webhooks.

    Quotas are given of the GPU nodes, so that whatever a queue admits runs there, jobs that ask for no GPU too, and not
    beside the cluster's own controllers. A job that selects other values of these labels is not admitted; one that
    runs keeps the labels with which it was admitted (Kueue v0.19.2, pkg/podset, pkg/scheduler/flavorassigner and
    pkg/util/equality).
    """

    name: pulumi.Output[str]

    def __init__(self, name: str, args: FlavorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:DefaultFlavor", name, None, opts)  # the type that stacks know it by
        document = resource_flavor(args)
        flavor = Manifest(document["metadata"]["name"], document, pulumi.ResourceOptions(parent=self))
        self.name = flavor.object_name
        self.register_outputs({"name": self.name})


def resource_flavor(args: FlavorArgs) -> Document:
    """Return the flavor. Of the first pool, without labels and taints, it is MLBatch's `setup.k8s/default-flavor.yaml`.

    Kueue lets nobody change a flavor with a topology, and keeps one that a queue uses: a changed one has another name,
    which the queues get before the old one goes.
    """
    labels: Document = {"nodeLabels": dict(args.nodes)} if args.nodes else {}
    tolerations = [dict(toleration) for toleration in args.tolerations]
    spec: Document = {**labels, **({"tolerations": tolerations} if tolerations else {})}
    name = args.name
    if args.topology is not None:
        of_levels = {"levels": list(args.levels)} if args.levels else {}
        digest = hashlib.sha256(json.dumps({**spec, **of_levels}, sort_keys=True).encode()).hexdigest()[:8]
        name = f"{args.name}-{digest}"
        spec["topologyName"] = args.topology
    return {
        "apiVersion": args.kueue_api,
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        **({"spec": spec} if spec else {}),
    }
