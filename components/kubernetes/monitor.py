"""ServiceMonitors (prometheus-operator/prometheus-operator, Documentation/api-reference)."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import metadata


def service_monitor(
    name: str,
    namespace: pulumi.Input[str],
    service: Mapping[str, str],
    endpoint: Document,
    *,
    labels: Mapping[str, str],
    of_namespace: str | None = None,
) -> Document:
    """Return the monitor of a Service's `/metrics`.

    service: labels of the Service.
    endpoint: port and more fields.
    labels: labels that Prometheus selects monitors by.
    of_namespace: namespace of the Service. None for the monitor's.
    """
    elsewhere = {"namespaceSelector": {"matchNames": [of_namespace]}} if of_namespace is not None else {}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(name, namespace, labels=labels),
        "spec": {
            **elsewhere,
            "selector": {"matchLabels": dict(service)},
            "endpoints": [{"path": "/metrics", **endpoint}],
        },
    }
