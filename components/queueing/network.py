"""Allowed connections to the operators' pods: from the API server and from readers of metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.network import Pods, answering
from components.layer import Layer

WEBHOOKS: Final = 9443
VISIBILITY: Final = 8082
"""Port of Kueue's API of pending jobs. The API server forwards requests to it."""
METRICS: Final = (8443, 8080)
"""Ports of the operators and of the slack controller."""
READERS: Final[Document] = {"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}
"""Namespaces with a Prometheus of the site, which an administrator labels. The label is the one in kubebuilder's policy
for such operators (kubernetes-sigs/kubebuilder, config/network-policy/allow-metrics-traffic.yaml)."""


@dataclass(frozen=True, kw_only=True)
class OperatorsNetworkArgs:
    """namespace: the operators' namespace. scrapers: pods that read metrics, besides READERS."""

    namespace: pulumi.Input[str]
    scrapers: Sequence[Pods] = ()


class OperatorsNetwork(Layer):
    """Close the operators' namespace, except for connections from the API server and from readers of metrics."""

    def __init__(self, name: str, args: OperatorsNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:OperatorsNetwork", name, None, opts)
        document = policy(args)
        self.ready = [Manifest(f"{name}/NetworkPolicy", document, pulumi.ResourceOptions(parent=self))]
        self.register_outputs({})


def policy(args: OperatorsNetworkArgs) -> Document:
    """Return the NetworkPolicy of the namespace."""
    readers = [*(pods.peer() for pods in args.scrapers), READERS]
    return answering(args.namespace, (WEBHOOKS, VISIBILITY), dict.fromkeys(METRICS, readers))
