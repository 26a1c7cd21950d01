"""The one kind of capacity that quotas are given in."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.nodes.shapes import GPU_TAINT


@dataclass(frozen=True, kw_only=True)
class DefaultFlavorArgs:
    """gpu_taint: the GPU nodes carry the GPU taint, so admitted jobs get the matching toleration."""

    gpu_taint: bool


class DefaultFlavor(pulumi.ComponentResource):
    """Create MLBatch's default ResourceFlavor. Depends on Kueue's webhooks."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: DefaultFlavorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:DefaultFlavor", name, None, opts)
        flavor = Manifest(names.FLAVOR, resource_flavor(args), pulumi.ResourceOptions(parent=self))
        self.name = flavor.object_name
        self.register_outputs({"name": self.name})


def resource_flavor(args: DefaultFlavorArgs) -> Document:
    """Return the flavor. Without a taint it has no spec, as in MLBatch's `setup.k8s/default-flavor.yaml`."""
    flavor: Document = {
        "apiVersion": names.KUEUE_API,
        "kind": "ResourceFlavor",
        "metadata": {"name": names.FLAVOR},
    }
    if args.gpu_taint:
        toleration = {"key": GPU_TAINT["key"], "operator": "Exists", "effect": GPU_TAINT["effect"]}
        flavor["spec"] = {"tolerations": [toleration]}
    return flavor
