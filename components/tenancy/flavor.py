"""The one kind of capacity that quotas are given in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest


@dataclass(frozen=True, kw_only=True)
class DefaultFlavorArgs:
    """tolerations: of the GPU nodes' taints, which admitted jobs get."""

    tolerations: Sequence[Mapping[str, str]] = ()


class DefaultFlavor(pulumi.ComponentResource):
    """Create MLBatch's default ResourceFlavor. Depends on Kueue's webhooks."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: DefaultFlavorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:DefaultFlavor", name, None, opts)
        flavor = Manifest(names.FLAVOR, resource_flavor(args), pulumi.ResourceOptions(parent=self))
        self.name = flavor.object_name
        self.register_outputs({"name": self.name})


def resource_flavor(args: DefaultFlavorArgs) -> Document:
    """Return the flavor. Without tolerations it has no spec, as in MLBatch's `setup.k8s/default-flavor.yaml`."""
    flavor: Document = {
        "apiVersion": names.KUEUE_API,
        "kind": "ResourceFlavor",
        "metadata": {"name": names.FLAVOR},
    }
    if args.tolerations:
        flavor["spec"] = {"tolerations": [dict(toleration) for toleration in args.tolerations]}
    return flavor
