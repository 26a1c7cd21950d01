"""NVIDIA's GPU operator: driver, container toolkit, device plugin and metrics of the GPU nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pulumi

from components.artifacts import LocatedChart
from components.kubernetes.charts import Chart, ChartArgs
from components.kubernetes.placement import Placement
from components.layer import Layer
from components.observability.metrics import DCGM_FIELDS
from components.observability.prometheus import BY_NODE

BY_VARIABLE: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
BY_MOUNT: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
"""Environment of the toolkit's installer, which writes the configuration of NVIDIA's runtime by it: whether
NVIDIA_VISIBLE_DEVICES, or a mount that is named after a GPU, gives one to a container that is not privileged
(NVIDIA/nvidia-container-toolkit, cmd/nvidia-ctk-installer/toolkit/toolkit.go, in v1.19.1 and v1.20.0; tools/container/
toolkit/toolkit.go in v1.17.0). What the operator itself runs on GPUs is privileged (NVIDIA/gpu-operator, assets)."""
_MOUNTS: Final = {"name": "DEVICE_LIST_STRATEGY", "value": "volume-mounts"}
"""Has the device plugin name a pod's GPUs by mounts (NVIDIA/k8s-device-plugin, README.md, DEVICE_LIST_STRATEGY)."""


OFF: Final = ("migManager", "sandboxWorkloads", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin")
"""Partitioned GPUs and what belongs to virtual machines."""


class HandOut(StrEnum):
    """How the device plugin tells the node's runtime which GPUs a pod was given.

    CDI: by the devices' names; NVIDIA's runtime is not the default one. MOUNTS: by mounts that are named after them,
    which NVIDIA's runtime, then the default one, looks at. So does NVshare, whose plugin knows no CDI; a container that
    mounts something under that name itself gets the GPU too, where nobody refuses such pods.
    """

    CDI = "cdi"
    MOUNTS = "mounts"


@dataclass(frozen=True, kw_only=True)
class GpuOperatorArgs:
    """What to install.

    chart: gpu-operator. namespace: must exist and allow privileged pods.
    brings_driver, brings_toolkit: off on nodes that come with the driver, or with the container toolkit in the runtime
        of Kubernetes' containers.
    driver_version: of the NVIDIA driver; None for the one that the chart's version comes with.
    hand_out: how pods get their GPUs.
    rdma: build the driver for GPUDirect RDMA. Its pods then wait for the network operator's InfiniBand driver on nodes
        that have such ports.
    drain: let an upgrade of the driver delete the pods that use a node's GPUs. Off, a node keeps its driver until its
        driver pod is deleted: a running job is not ended by a change of version.
    monitor_labels: labels by which a Prometheus finds the GPU metrics; None for no ServiceMonitor. Its kind has to
        exist first: without it the operator does not get ready.
    placement: the operator itself is a service; what it starts runs on GPU nodes, which it finds by their labels.
    """

    chart: LocatedChart
    namespace: pulumi.Input[str]
    placement: Placement
    brings_driver: bool = True
    brings_toolkit: bool = True
    driver_version: str | None = None
    hand_out: HandOut = HandOut.CDI
    rdma: bool = True
    drain: bool = False
    monitor_labels: Mapping[str, str] | None = None


class GpuOperator(Layer):
    """Install the operator, which then prepares each GPU node by itself.

    Node Feature Discovery must run, and with RDMA the network operator's policy has to be ready: in the other order the
    driver's pods wait for symbols that nobody provides. The nodes must come without what the operator brings. Ready
    means that the operator runs; a node's GPUs can be asked for some minutes later.
    """

    def __init__(self, name: str, args: GpuOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:GpuOperator", name, None, opts)
        chart = Chart(
            name,
            ChartArgs(
                chart=args.chart, namespace=args.namespace, release="gpu-operator", values=gpu_operator_values(args)
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.ready = chart.ready
        self.register_outputs({})


def gpu_operator_values(args: GpuOperatorArgs) -> Mapping[str, Any]:
    """Return the chart's values (NVIDIA/gpu-operator, deployments/gpu-operator/values.yaml).

    A pod gets the GPUs that it asks for and no others: by CDI, with which the device plugin hands containerd or CRI-O
    the names of the devices, and NVIDIA's runtime is not the default one (controllers/object_controls.go,
    transformToolkitCtrForCDI and transformDevicePluginCtrForCDI); or by mounts. Who names that runtime's class is held
    by the toolkit's environment, of a toolkit that the nodes come with by the nodes' own configuration.

    The metrics are listed by ourselves, because the
    exporter's own list has no ECC errors.
    """
    driver: dict[str, Any] = {
        "enabled": args.brings_driver,
        "rdma": {"enabled": args.rdma, "useHostMofed": False},
        "upgradePolicy": {"autoUpgrade": args.drain},
    }
    if args.driver_version is not None:
        driver["version"] = args.driver_version
    monitor: dict[str, Any] = {"enabled": args.monitor_labels is not None}
    if args.monitor_labels is not None:
        monitor |= {"additionalLabels": dict(args.monitor_labels), "relabelings": [dict(BY_NODE)]}
    return {
        "nfd": {"enabled": False},
        "operator": args.placement.system.body(),
        "daemonsets": {"tolerations": [dict(toleration) for toleration in args.placement.gpus.tolerations]},
        "driver": driver,
        "cdi": {"enabled": args.hand_out is HandOut.CDI},
        "toolkit": {"enabled": args.brings_toolkit, "env": toolkit_environment(args.hand_out)},
        **({"devicePlugin": {"env": [dict(_MOUNTS)]}} if args.hand_out is HandOut.MOUNTS else {}),
        "dcgmExporter": {
            "enabled": True,
            "config": {"name": metrics_name(), "create": True, "data": dcgm_metrics()},
            "serviceMonitor": monitor,
        },
        **{part: {"enabled": False} for part in OFF},
    }


def toolkit_environment(hand_out: HandOut) -> list[dict[str, str]]:
    """Return the environment with which nothing but what the device plugin says gives a container a GPU."""
    mounts = "true" if hand_out is HandOut.MOUNTS else "false"
    return [{"name": BY_VARIABLE, "value": "false"}, {"name": BY_MOUNT, "value": mounts}]


def dcgm_metrics() -> str:
    """Return the exporter's list of metrics: field, Prometheus type and help on each line."""
    return "".join(f"{field.name}, {field.kind}, {field.help}\n" for field in DCGM_FIELDS)


def metrics_name() -> str:
    """Return the name of the ConfigMap with that list, which changes with it.

    Exporters mount it by subPath (NVIDIA/gpu-operator, controllers/object_controls.go, TransformDCGMExporter): one that
    runs would never see a change. Another name has the operator start them anew.
    """
    return f"mlbatch-dcgm-metrics-{hashlib.sha256(dcgm_metrics().encode()).hexdigest()[:8]}"
