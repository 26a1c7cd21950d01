"""Devices of simulated machines, and what their nodes show of them, as computed by `operators`.

Annotations of a node list its devices (`Hardware`). Nodes without them are left unchanged. Like on a real machine, a
node shows its devices only while the required pods and custom resources exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from emulator.cluster.api import Object
from emulator.cluster.simulations import NEEDS

PREFIX = "hardware.emulator/"
"""Of the annotations that list the devices of a simulated machine."""


@dataclass(frozen=True)
class Hardware:
    """The devices of a machine. driver: source of a GPU driver installed before any operator, empty without one."""

    gpus: int = 0
    product: str = ""
    infiniband: int = 0
    nvme: int = 0
    driver: str = ""

    @classmethod
    def of(cls, node: Object) -> Hardware | None:
        """Return the hardware in a node's annotations, None without any."""
        found = {
            key.removeprefix(PREFIX): value
            for key, value in (node["metadata"].get("annotations") or {}).items()
            if key.startswith(PREFIX)
        }
        if not found:
            return None
        numbers = {key: int(found.get(key) or 0) for key in NEEDS}
        return cls(**numbers, product=found.get("gpu-product", ""), driver=found.get("driver", ""))

    def pci(self) -> list[dict[str, str]]:
        """Return the machine's PCI devices with class, vendor and device, as on an NDv5 machine (pci.ids)."""
        found = [{"class": "0302", "vendor": "10de", "device": "2330"}] if self.gpus else []
        return [*found, {"class": "0207", "vendor": "15b3", "device": "101e"}] if self.infiniband else found


@dataclass(frozen=True)
class ClusterSnapshot:
    """The state of the cluster that operators read.

    config_map: returns a ConfigMap by namespace and name.
    nic_policies, cluster_policies, feature_rules: the custom resources NicClusterPolicy, ClusterPolicy and
        NodeFeatureRule.
    """

    pods: Sequence[Object] = ()
    config_map: Callable[[str, str], Object | None] = lambda namespace, name: None
    nic_policies: Sequence[Object] = ()
    cluster_policies: Sequence[Object] = ()
    feature_rules: Sequence[Object] = ()

    def running(self, labels: Mapping[str, str], node: str = "") -> list[Object]:
        """Return the running pods with these labels, on one node or on all."""
        return [
            pod
            for pod in self.pods
            if (not node or pod["spec"].get("nodeName") == node)
            and (pod.get("status") or {}).get("phase") == "Running"
            and labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]


@dataclass
class NodeFeatures:
    """Labels and resources that a node shows for its devices. notes: reason and message for missing ones."""

    labels: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)


def shows(node: Object, features: NodeFeatures) -> bool:
    """Tell whether a node has the labels, and the resources in capacity and allocatable."""
    status = node.get("status") or {}
    return features.labels.items() <= (node["metadata"].get("labels") or {}).items() and all(
        features.resources.items() <= (status.get(part) or {}).items() for part in ("capacity", "allocatable")
    )
