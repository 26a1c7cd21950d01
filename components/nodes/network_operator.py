"""NVIDIA's network operator: the InfiniBand driver of the nodes, and the device plugin that offers the ports.

The chart installs only the operator. Up to 24.7 its values also described the driver and the plugins. From 24.10 on it
ignores these values without an error, and no node would offer a port. This program therefore declares the
NicClusterPolicy as its own object (Mellanox/network-operator, deployment/network-operator/values.yaml).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pulumi

from components import names
from components.artifacts import LocatedChart
from components.catalogue import NicSoftware
from components.images import Reference
from components.kubernetes.charts import Chart, ChartArgs
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.placement import NodeGroup, Placement
from components.layer import Layer
from components.nodes.feature_discovery import NIC_LABEL

POLICY: Final = "nic-cluster-policy"
"""The only name that the operator accepts (controllers/nicclusterpolicy_controller.go)."""

_MELLANOX: Final = "15b3"
_SHARED_PODS: Final = 63
"""The most pods of a node that use the shared devices at once (the chart's default up to 24.7)."""
_READY: Final = {"pulumi.com/waitFor": "jsonpath={.status.state}=ready"}


class DevicePlugin(StrEnum):
    """How a pod gets access to the InfiniBand ports.

    sriov: each port is a device, `nvidia.com/mlnxnics`, of one pod. In virtual machines the ports are already virtual
        functions.
    shared: each pod that requests one `rdma/rdma_shared_device_a` gets all ports. Pods share the ports, and quotas do
        not count them.
    """

    SRIOV = "sriov"
    SHARED = "shared"


@dataclass(frozen=True, kw_only=True)
class NetworkOperatorArgs:
    """The arguments of the operator.

    chart: network-operator, 24.10 or later.
    images: the software of the same release, with the images as nodes pull them.
    namespace: must exist and allow privileged pods.
    device_plugin: only one, because both would offer the same ports.
    wait: wait until the policy is ready. Each node compiles the driver. Without any node with such a port, a policy
    never becomes ready, so do not wait for an empty pool.
    wait_seconds: the longest wait.
    drain: a driver upgrade first evicts the pods of a node, one node at a time. If false, a node keeps its driver until
    its driver pod is deleted, so a new version does not end running jobs.
    placement: of the operator, the driver and the plugins. It excludes nodes whose taints are not tolerated.
    """

    chart: LocatedChart
    images: NicSoftware
    namespace: pulumi.Input[str]
    placement: Placement
    device_plugin: DevicePlugin = DevicePlugin.SRIOV
    wait: bool = True
    wait_seconds: int = 1800
    drain: bool = False


class NetworkOperator(Layer):
    """Install the operator and its policy for nodes with InfiniBand ports.

    Node Feature Discovery must run, because its label `pci-15b3.present` identifies these nodes. Does not set up
    secondary networks, because jobs use the ports directly.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these for the ports, and for a GPU driver that is built with the InfiniBand driver."""

    def __init__(self, name: str, args: NetworkOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NetworkOperator", name, None, opts)
        chart = Chart(
            name,
            ChartArgs(
                chart=args.chart,
                namespace=args.namespace,
                release="network-operator",
                values=network_operator_values(args.placement.system),
            ),
            pulumi.ResourceOptions(parent=self),
        )
        bound = pulumi.CustomTimeouts(create=f"{args.wait_seconds}s", update=f"{args.wait_seconds}s")
        policy = Manifest(
            f"{name}/{POLICY}",
            nic_cluster_policy(args),
            pulumi.ResourceOptions(parent=self, depends_on=chart.ready, custom_timeouts=bound),
        )
        self.ready = [policy]
        self.register_outputs({})


def network_operator_values(nodes: NodeGroup) -> Mapping[str, Any]:
    """Return the chart's values.

    Feature discovery is installed separately. Its label replaces the chart's NodeFeatureRules.
    """
    return {
        "nfd": {"enabled": False, "deployNodeFeatureRules": False},
        "sriovNetworkOperator": {"enabled": False},
        "operator": nodes.body(),
    }


def nic_cluster_policy(args: NetworkOperatorArgs) -> Document:
    """Return the policy (mellanox.com/v1alpha1, api/v1alpha1/nicclusterpolicy_types.go)."""
    metadata: dict[str, Any] = {"name": POLICY}
    if args.wait:
        metadata["annotations"] = dict(_READY)
    has_port = {"matchExpressions": [{"key": NIC_LABEL, "operator": "In", "values": ["true"]}]}
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": metadata,
        "spec": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [has_port]}},
            "tolerations": [dict(toleration) for toleration in args.placement.gpus.tolerations],
            "ofedDriver": _driver(args),
            **_plugin(args),
        },
    }


def _driver(args: NetworkOperatorArgs) -> Mapping[str, Any]:
    return {
        **_image(args.images.driver),
        # Otherwise the in-box modules may load first at boot (Mellanox/doca-driver-build, issue 52).
        "env": [
            {"name": "OFED_BLACKLIST_MODULES_FILE", "value": "/host/etc/modprobe.d/blacklist-ofed-modules.conf"},
        ],
        "forcePrecompiled": False,
        "upgradePolicy": {
            "autoUpgrade": args.drain,
            "maxParallelUpgrades": 1,
            "drain": {"enable": args.drain, "force": args.drain, "deleteEmptyDir": args.drain, "timeoutSeconds": 300},
        },
        "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
        "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
    }


def _plugin(args: NetworkOperatorArgs) -> Mapping[str, Any]:
    selectors: dict[str, Any] = {"vendors": [_MELLANOX], "linkTypes": ["infiniband"]}
    if args.device_plugin is DevicePlugin.SRIOV:
        prefix, _, name = names.INFINIBAND.partition("/")
        port = {"resourcePrefix": prefix, "resourceName": name, "selectors": {**selectors, "isRdma": True}}
        return {"sriovDevicePlugin": _configured(args.images.sriov_plugin, {"resourceList": [port]})}
    _, _, name = names.SHARED_INFINIBAND.partition("/")
    ports = {"resourceName": name, "rdmaHcaMax": _SHARED_PODS, "selectors": selectors}
    return {"rdmaSharedDevicePlugin": _configured(args.images.shared_plugin, {"configList": [ports]})}


def _configured(image: str, config: Mapping[str, Any]) -> Mapping[str, str]:
    return {**_image(image), "config": json.dumps(config)}


def _image(reference: str) -> Mapping[str, str]:
    """Return a reference in the three parts of the API. A digest replaces the version.

    Source: Mellanox/network-operator, pkg/render/render.go, imagePath.
    """
    parsed = Reference.parse(reference)
    repository, _, image = parsed.repository.rpartition("/")
    return {"repository": repository, "image": image, "version": parsed.digest or parsed.tag or ""}
