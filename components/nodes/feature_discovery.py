"""Node Feature Discovery: labels nodes with the hardware that NVIDIA's operators look for.

It is installed separately and once, because both operators use it (edwardsp/ai-on-aks, readme.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.artifacts import LocatedChart
from components.kubernetes.charts import ChartArgs, ChartLayer
from components.kubernetes.placement import Placement

OPERATOR_NAMESPACE: Final = "nvidia-operator"
"""The namespace of feature discovery and both operators (edwardsp/ai-on-aks)."""
NIC_LABEL: Final = "feature.node.kubernetes.io/pci-15b3.present"
"""The node has a PCI device of Mellanox. A node with NVIDIA GPUs has `pci-10de.present`."""

_PCI_CLASSES: Final = ("02", "03", "0200", "0207")
"""Network and display controllers, Ethernet and InfiniBand. They are strings, because the number 2 is not a class."""


@dataclass(frozen=True, kw_only=True)
class FeatureDiscoveryArgs:
    """namespace: must exist. placement: its worker runs on GPU nodes."""

    chart: LocatedChart
    namespace: pulumi.Input[str]
    placement: Placement


class FeatureDiscovery(ChartLayer):
    """Run feature discovery: its master on nodes for services, its worker only on GPU nodes.

    Labels contain only the vendor, `pci-15b3.present`, because the network operator does not support the form with
    class and vendor.
    """

    def __init__(self, name: str, args: FeatureDiscoveryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        chart = ChartArgs(
            chart=args.chart,
            namespace=args.namespace,
            release="node-feature-discovery",
            values=feature_discovery_values(args.placement),
        )
        super().__init__("mlbatch:nodes:FeatureDiscovery", name, chart, opts)


def feature_discovery_values(placement: Placement) -> Mapping[str, Any]:
    """Return the chart's values (kubernetes-sigs/node-feature-discovery, deployment/helm)."""
    return {
        "master": placement.system.body(),
        "gc": placement.system.body(),
        "worker": {
            **placement.gpus.body(),
            "config": {
                "sources": {"pci": {"deviceClassWhitelist": list(_PCI_CLASSES), "deviceLabelFields": ["vendor"]}}
            },
        },
    }
