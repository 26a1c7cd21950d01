"""What makes the GPU nodes usable: drivers, InfiniBand, labels, local disks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components import catalogue
from components.artefacts import Mirror
from components.kubernetes.cluster import Cluster
from components.kubernetes.fabric import Fabric
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.nodes import node_agent
from components.nodes.feature_discovery import (
    OPERATOR_NAMESPACE,
    FeatureDiscovery,
    FeatureDiscoveryArgs,
)
from components.nodes.gpu_operator import GpuOperator, GpuOperatorArgs
from components.nodes.network_operator import DevicePlugin, NetworkOperator, NetworkOperatorArgs, NicImages
from components.nodes.node_labeler import NodeLabeler, NodeLabelerArgs
from components.nodes.nvme_scratch import NvmeScratch, NvmeScratchArgs
from components.observability.prometheus import MONITOR_LABELS, Monitoring
from stacks.settings import Settings
from stacks.settings.workloads import fabric_of


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The GPU nodes as workloads see them.

    fabric: what their pods ask of the network. ready: before a pod may ask for GPUs.
    """

    fabric: Fabric
    ready: Sequence[pulumi.Resource]


def prepare(settings: Settings, mirror: Mirror, cluster: Cluster, monitoring: Monitoring | None) -> Machines:
    """Register what prepares the GPU nodes: feature discovery, InfiniBand, GPUs, labels, local disks."""
    gpu, on = settings.gpu, cluster.options
    assert settings.azure is not None
    python = mirror.image(catalogue.PYTHON.reference)
    has_ports = _has_ports(settings)

    operators = Namespace("operators", NamespaceArgs(name=OPERATOR_NAMESPACE, privileged=True), on(gpus=True))
    discovery_chart = mirror.chart(catalogue.find_chart("node-feature-discovery", gpu.feature_discovery_version))
    discovery = FeatureDiscovery(
        "feature-discovery", FeatureDiscoveryArgs(chart=discovery_chart, namespace=operators.name), on()
    )
    before_gpus: pulumi.Resource = discovery
    if has_ports:
        software = catalogue.find_nic_software(gpu.fabric.operator_version)
        network_args = NetworkOperatorArgs(
            chart=mirror.chart(catalogue.find_chart("network-operator", gpu.fabric.operator_version)),
            images=NicImages(
                driver=mirror.image(software.driver),
                sriov_plugin=mirror.image(software.sriov_plugin),
                shared_plugin=mirror.image(software.shared_plugin),
            ),
            namespace=operators.name,
            device_plugin=gpu.fabric.device_plugin,
            wait=settings.azure.gpu_pool.count > 0,
            wait_seconds=gpu.fabric.wait_minutes * 60,
            drain=gpu.drain_for_drivers,
        )
        before_gpus = NetworkOperator("network-operator", network_args, on(discovery))
    operator_args = GpuOperatorArgs(
        chart=mirror.chart(catalogue.find_chart("gpu-operator", gpu.operator_version)),
        namespace=operators.name,
        driver_version=gpu.driver_version,
        rdma=has_ports,
        drain=gpu.drain_for_drivers,
        monitor_labels=MONITOR_LABELS if monitoring else None,
    )
    monitored = [monitoring] if monitoring else []
    operator = GpuOperator("gpu-operator", operator_args, on(before_gpus, *monitored))

    agents = Namespace("agents", NamespaceArgs(name=node_agent.NAMESPACE, privileged=True), on(gpus=True))
    if gpu.node_labels:
        NodeLabeler("node-labeler", NodeLabelerArgs(namespace=agents.name, image=python), on())
    if gpu.nvme_scratch.enabled:
        scratch = NvmeScratchArgs(namespace=agents.name, image=python, filesystem=gpu.nvme_scratch.filesystem)
        NvmeScratch("nvme-scratch", scratch, on())

    return Machines(fabric=cluster.fabric, ready=[operator])


def fabric(settings: Settings) -> Fabric:
    """Return what pods on the GPU nodes ask of the network."""
    is_shared = _has_ports(settings) and settings.gpu.fabric.device_plugin is DevicePlugin.SHARED
    return fabric_of(settings.pool, shared=is_shared)


def _has_ports(settings: Settings) -> bool:
    assert settings.azure is not None
    return settings.gpu.fabric.enabled and settings.azure.gpu_pool.size.infiniband_ports > 0
