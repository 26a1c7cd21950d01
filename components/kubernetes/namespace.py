"""Namespaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.objects import metadata
from components.kubernetes.resource_quota import critical_pods
from components.layer import Layer

_FORMER_TYPES: Final = (
    "mlbatch:nodes:PrivilegedNamespace",
    "mlbatch:queueing:SystemNamespace",
    "mlbatch:workloads:WorkloadsNamespace",
)
"""Types of namespaces in stacks that are older than this component."""


@dataclass(frozen=True, kw_only=True)
class NamespaceArgs:
    """The arguments of a namespace.

    labels, annotations: of the namespace.
    critical: its pods may have a system priority class.
    privileged: no Pod Security Standard applies to its pods. Otherwise, if Pod Security Admission is enforced, it
    rejects pods that mount the node's folders or change the node. This does not grant rights to create pods there.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    privileged: bool = False
    critical: bool = False


class Namespace(Layer):
    """Create a namespace, with the ResourceQuota for critical pods if it has any."""

    name: pulumi.Output[str]
    """Known when the namespace and its objects exist."""

    def __init__(self, name: str, args: NamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        former = pulumi.ResourceOptions(aliases=[pulumi.Alias(type_=token) for token in _FORMER_TYPES])
        super().__init__("mlbatch:kubernetes:Namespace", name, None, pulumi.ResourceOptions.merge(opts, former))
        namespace = Manifest(args.name, namespace_body(args), pulumi.ResourceOptions(parent=self))
        self.name = namespace.object_name
        self.ready = [namespace]
        if args.critical:
            quota = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
            critical = Manifest(f"{args.name}/ResourceQuota", critical_pods(args.name), quota)
            self.name = pulumi.Output.all(namespace.object_name, critical.object_name).apply(lambda both: str(both[0]))
            self.ready = [namespace, critical]
        self.register_outputs({"name": self.name})


def namespace_body(args: NamespaceArgs) -> Document:
    """Return the namespace."""
    labels = {**args.labels, **(pod_security("privileged") if args.privileged else {})}
    own = metadata(args.name, labels=labels, annotations=args.annotations)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": own}


def pod_security(level: str) -> Mapping[str, str]:
    """Return a namespace's labels for Pod Security Admission, which enforces a Pod Security Standard."""
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}
