"""The namespace of jobs that no team submits: those of Volcano, and plain ones."""

from __future__ import annotations

from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest

NAMESPACE: Final = "workloads"


class WorkloadsNamespace(pulumi.ComponentResource):
    """Create the namespace. It lacks the label of a team's: Kueue leaves its jobs alone, and no quota counts them."""

    name: pulumi.Output[str]

    def __init__(self, name: str, namespace: str = NAMESPACE, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:WorkloadsNamespace", name, None, opts)
        self.name = Manifest(namespace, namespace_object(namespace), pulumi.ResourceOptions(parent=self)).object_name
        self.register_outputs({"name": self.name})


def namespace_object(name: str) -> Document:
    """Return the namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
