"""The namespace of jobs that no team submits: those of Volcano, and plain ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import Manifest

NAMESPACE: Final = "workloads"


@dataclass(frozen=True, kw_only=True)
class WorkloadsNamespaceArgs:
    """namespace: its name, which is no team's."""

    namespace: str = NAMESPACE


class WorkloadsNamespace(pulumi.ComponentResource):
    """Create the namespace. It lacks the label of a team's: Kueue leaves its jobs alone, and no quota counts them."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: WorkloadsNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:WorkloadsNamespace", name, None, opts)
        body = objects.namespace(args.namespace)
        self.name = Manifest(args.namespace, body, pulumi.ResourceOptions(parent=self)).object_name
        self.register_outputs({"name": self.name})
