"""Namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

_MODES: Final = ("enforce", "audit", "warn")
_FORMER_TYPES: Final = (
    "mlbatch:nodes:PrivilegedNamespace",
    "mlbatch:queueing:SystemNamespace",
    "mlbatch:workloads:WorkloadsNamespace",
)
"""As which stacks that are older than this component have their namespaces."""


@dataclass(frozen=True, kw_only=True)
class NamespaceArgs:
    """labels: of the namespace.

    privileged: no Pod Security Standard restrains its pods. Where Pod Security Admission is enforced, pods that mount
    the node's folders or change the node are refused otherwise. Gives nobody a right to create pods there.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    privileged: bool = False


class Namespace(Layer):
    """Create a namespace, with nothing in it."""

    name: pulumi.Output[str]
    """Known once the namespace exists."""

    def __init__(self, name: str, args: NamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        former = pulumi.ResourceOptions(aliases=[pulumi.Alias(type_=token) for token in _FORMER_TYPES])
        super().__init__("mlbatch:kubernetes:Namespace", name, None, pulumi.ResourceOptions.merge(opts, former))
        namespace = Manifest(args.name, namespace_body(args), pulumi.ResourceOptions(parent=self))
        self.name = namespace.object_name
        self.ready = [namespace]
        self.register_outputs({"name": self.name})


def namespace_body(args: NamespaceArgs) -> Document:
    """Return the namespace."""
    security = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in _MODES} if args.privileged else {}
    labels = {**args.labels, **security}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": args.name, **({"labels": labels} if labels else {})},
    }
