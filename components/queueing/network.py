"""Who connects to the operators' pods: the API server, and what reads their metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.network import Pods, answering
from components.layer import Layer

WEBHOOKS: Final = 9443
VISIBILITY: Final = 8082
"""Kueue's own API of pending jobs, which the API server forwards to."""
METRICS: Final = (8443, 8080)
"""Of the operators, and of the slack controller."""
READERS: Final[Document] = {"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}
"""Namespaces that an administrator labels so for a Prometheus of the site's own: the label of the policy that
kubebuilder makes for such operators (kubernetes-sigs/kubebuilder, config/network-policy/allow-metrics-traffic.yaml)."""


@dataclass(frozen=True, kw_only=True)
class OperatorsNetworkArgs:
    """namespace: the operators'. scrapers: pods that read their metrics, beside READERS."""

    namespace: pulumi.Input[str]
    scrapers: Sequence[Pods] = ()


class OperatorsNetwork(Layer):
    """Close the operators' namespace, but for what answers the API server, and metrics for those who read them."""

    def __init__(self, name: str, args: OperatorsNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:OperatorsNetwork", name, None, opts)
        document = policy(args)
        self.ready = [Manifest(f"{name}/NetworkPolicy", document, pulumi.ResourceOptions(parent=self))]
        self.register_outputs({})


def policy(args: OperatorsNetworkArgs) -> Document:
    """Return the NetworkPolicy of the namespace."""
    readers = [*(pods.peer() for pods in args.scrapers), READERS]
    return answering(args.namespace, (WEBHOOKS, VISIBILITY), dict.fromkeys(METRICS, readers))
