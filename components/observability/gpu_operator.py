"""Metrics of an existing GPU operator, whose own monitors lack the label that Prometheus selects."""

from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import Document, Manifest
from components.observability.prometheus import BY_NODE, MONITOR_LABELS

SERVICES: Final = {
    "nvidia-dcgm-exporter": "gpu-metrics",
    "gpu-operator": "gpu-operator-metrics",
    "nvidia-node-status-exporter": "node-status",
}
"""Port by Service. The Service's label `app` is its name (NVIDIA/gpu-operator, assets/state-dcgm-exporter,
state-operator-metrics and state-node-status-exporter)."""


@dataclass(frozen=True, kw_only=True)
class GpuOperatorMonitorsArgs:
    """namespace: of the monitors, which must exist. operator: the operator's namespace."""

    namespace: pulumi.Input[str]
    operator: str


class GpuOperatorMonitors(pulumi.ComponentResource):
    """Create monitors so that Prometheus reads the operator's Services. The operator would remove a label from its own.

    The CRD of ServiceMonitor must exist. A missing Service is ignored.
    """

    def __init__(self, name: str, args: GpuOperatorMonitorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:GpuOperatorMonitors", name, None, opts)
        for service, port in SERVICES.items():
            Manifest(f"{name}/{service}", monitor(service, port, args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def monitor(service: str, port: str, args: GpuOperatorMonitorsArgs) -> Document:
    """Return the monitor of a Service."""
    endpoint = {"port": port, "relabelings": [dict(BY_NODE)]}
    return objects.service_monitor(
        service, args.namespace, {"app": service}, endpoint, labels=MONITOR_LABELS, of_namespace=args.operator
    )
