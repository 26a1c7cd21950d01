"""NVIDIA's GPU operator: driver, container toolkit, device plugin and metrics of the GPU nodes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pulumi

from components.artifacts import LocatedChart
from components.kubernetes.charts import ChartArgs, ChartLayer
from components.kubernetes.placement import Placement
from components.observability.metrics import DCGM_FIELDS
from components.observability.prometheus import BY_NODE

BY_VARIABLE: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
BY_MOUNT: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
"""Variable of the toolkit's installer, which sets it in the configuration of NVIDIA's runtime. It decides what gives a
GPU to an unprivileged container: NVIDIA_VISIBLE_DEVICES, or a mount with a GPU's name (NVIDIA/nvidia-container-toolkit,
cmd/nvidia-ctk-installer/toolkit/toolkit.go, in v1.19.1 and v1.20.0; tools/container/toolkit/toolkit.go in v1.17.0). The
operator's own GPU containers are privileged (NVIDIA/gpu-operator, assets)."""
_MOUNTS: Final = {"name": "DEVICE_LIST_STRATEGY", "value": "volume-mounts"}
"""Makes the device plugin name a pod's GPUs by mounts (NVIDIA/k8s-device-plugin, README.md, DEVICE_LIST_STRATEGY)."""


OFF: Final = ("migManager", "sandboxWorkloads", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin")
"""Components for partitioned GPUs and for virtual machines."""


class HandOut(StrEnum):
    """How the device plugin passes a pod's GPUs to the node's runtime.

    CDI: by device names. NVIDIA's runtime is not the default runtime.
    MOUNTS: by mounts with the GPUs' names. NVIDIA's runtime is the default runtime and reads them. NVshare's plugin
    needs this, because it does not support CDI. A container that mounts something with such a name also gets the GPU,
    unless a policy rejects the pod.
    """

    CDI = "cdi"
    MOUNTS = "mounts"


@dataclass(frozen=True, kw_only=True)
class GpuOperatorArgs:
    """The arguments of the operator.

    namespace: must exist and allow privileged pods.
    brings_driver: install the driver. False if the nodes already have it.
    brings_toolkit: install the container toolkit. False if the nodes' container runtime already has it.
    driver_version: of the NVIDIA driver. None for the default of the chart's version.
    hand_out: how pods get their GPUs.
    rdma: build the driver for GPUDirect RDMA. On nodes with InfiniBand ports, its pods then wait for the network
    operator's driver.
    drain: a driver upgrade may delete the pods that use a node's GPUs. If false, a node keeps its driver until its
    driver pod is deleted, so a new version does not end running jobs.
    monitor_labels: labels that a Prometheus uses to find the GPU metrics. None creates no ServiceMonitor. With labels,
    the CRD of ServiceMonitor must exist, or the operator does not become ready.
    placement: the operator runs with the services. Its DaemonSets run on GPU nodes, which it finds by their labels.
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


class GpuOperator(ChartLayer):
    """Install the operator, which prepares each GPU node.

    Node Feature Discovery must run. With RDMA, the network operator's policy must be ready first, because the driver's
    pods wait for its symbols. The nodes must not already have what the operator installs. Ready means that the operator
    runs. Pods can request a node's GPUs some minutes later.
    """

    def __init__(self, name: str, args: GpuOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        chart = ChartArgs(
            chart=args.chart, namespace=args.namespace, release="gpu-operator", values=gpu_operator_values(args)
        )
        super().__init__("mlbatch:nodes:GpuOperator", name, chart, opts)


def gpu_operator_values(args: GpuOperatorArgs) -> Mapping[str, Any]:
    """Return the chart's values (NVIDIA/gpu-operator, deployments/gpu-operator/values.yaml).

    A pod gets only the GPUs that it requests. With CDI, the device plugin passes the device names to containerd or
    CRI-O, and NVIDIA's runtime is not the default runtime (controllers/object_controls.go, transformToolkitCtrForCDI
    and transformDevicePluginCtrForCDI). Otherwise, it passes them by mounts. For pods that name that runtime's class,
    the toolkit's environment enforces it. If the nodes come with the toolkit, their own configuration has to enforce
    it.

    The list of metrics is the platform's, because the exporter's default list has no ECC errors.
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
    """Return the environment that gives a container only the GPUs from the device plugin."""
    mounts = "true" if hand_out is HandOut.MOUNTS else "false"
    return [{"name": BY_VARIABLE, "value": "false"}, {"name": BY_MOUNT, "value": mounts}]


def dcgm_metrics() -> str:
    """Return the exporter's list of metrics. Each line has a field, a Prometheus type and a help text."""
    return "".join(f"{field.name}, {field.kind}, {field.help}\n" for field in DCGM_FIELDS)


def metrics_name() -> str:
    """Return the name of the ConfigMap with that list. The name changes with the list.

    Exporters mount it by subPath (NVIDIA/gpu-operator, controllers/object_controls.go, TransformDCGMExporter), so a
    running exporter would never see a change. With another name, the operator restarts them.
    """
    return f"mlbatch-dcgm-metrics-{hashlib.sha256(dcgm_metrics().encode()).hexdigest()[:8]}"
