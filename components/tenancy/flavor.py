"""ResourceFlavors for quotas: one for each node pool."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest


@dataclass(frozen=True, kw_only=True)
class FlavorArgs:
    """The arguments of a flavor.

    name: name of the node pool.
    nodes: labels of the GPU nodes. Admitted jobs get them.
    tolerations: of the taints of the GPU nodes. Admitted jobs get them.
    topology: name of the Topology that Kueue uses to find free nodes and to assign a job's pods to them. It needs
    labels. None uses quotas only.
    levels: levels of the Topology above the node.
    kueue_api: API version of the flavor.
    """

    name: str = names.FLAVOR
    nodes: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    topology: pulumi.Input[str] | None = None
    levels: Sequence[str] = ()
    kueue_api: str = names.KUEUE_API


class Flavor(pulumi.ComponentResource):
    """Create the ResourceFlavor of a node pool. Depends on Kueue's webhooks.

    Quotas refer to the GPU nodes. Every admitted job runs there, even if it requests no GPU, and stays away from the
    nodes of the cluster's controllers. Kueue does not admit a job that selects other values of these labels. A running
    job keeps the labels that it was admitted with (Kueue v0.19.2, pkg/podset, pkg/scheduler/flavorassigner and
    pkg/util/equality).
    """

    name: pulumi.Output[str]

    def __init__(self, name: str, args: FlavorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:DefaultFlavor", name, None, opts)  # type in existing stacks
        document = resource_flavor(args)
        flavor = Manifest(document["metadata"]["name"], document, pulumi.ResourceOptions(parent=self))
        self.name = flavor.object_name
        self.register_outputs({"name": self.name})


def resource_flavor(args: FlavorArgs) -> Document:
    """Return the flavor. Without labels and taints, the first pool's is MLBatch's `setup.k8s/default-flavor.yaml`.

    Kueue rejects changes of a flavor that has a topology, and keeps a flavor that a queue uses. A changed flavor
    therefore has another name. The queues switch to it before the old flavor is deleted.
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
