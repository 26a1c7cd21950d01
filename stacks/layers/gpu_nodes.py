"""What makes the GPU nodes usable: feature discovery, RDMA, drivers, labels, local disks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pulumi

from components import catalogue
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.placement import Placement
from components.nodes import node_agent, nvshare
from components.nodes.feature_discovery import OPERATOR_NAMESPACE, FeatureDiscovery, FeatureDiscoveryArgs
from components.nodes.gpu_operator import GpuOperator, GpuOperatorArgs, HandOut
from components.nodes.network_operator import NetworkOperator, NetworkOperatorArgs
from components.nodes.nvme_scratch import NvmeScratch, NvmeScratchArgs
from components.nodes.nvshare import Nvshare, NvshareArgs, NvshareImages
from components.nodes.nvshare_verification import NvshareVerification, NvshareVerificationArgs
from components.observability.prometheus import MONITOR_LABELS, Monitoring
from stacks.config.inputs import StackInputs
from stacks.layers.site import SiteLayers
from stacks.settings import PlatformSettings


def install(
    inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers, metrics: Monitoring | None
) -> Sequence[pulumi.Resource]:
    """Register what prepares the GPU nodes, and return what must exist before a pod requests GPUs."""
    own = site.gpu_operator()
    ready = [own] if own is not None else _operators(inputs, cluster, site, metrics)
    _agents(inputs, cluster, site)
    if inputs.settings.nvshare.enabled:
        ready = [_nvshare(inputs, cluster, site, ready)]
    return [*cluster.gpus_ready, *ready]


def gives_by_mounts(settings: PlatformSettings) -> bool:
    """Return whether a container's mount may request a GPU, as NVshare's plugin does."""
    return settings.gpu.by_mounts or settings.nvshare.enabled


def _operators(
    inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers, metrics: Monitoring | None
) -> Sequence[pulumi.Resource]:
    gpu, mirror = inputs.settings.gpu, inputs.mirror
    has_ports = gpu.fabric.enabled and any(each.fabric.resource is not None for each in inputs.resolved.divisions)
    if not (gpu.feature_discovery or gpu.operator or has_ports):
        return ()
    namespace = NamespaceArgs(name=OPERATOR_NAMESPACE, privileged=True, critical=True)
    placed = Placement(system=site.kept_usable(cluster.placement.system), gpus=site.kept_usable(cluster.placement.gpus))
    operators = Namespace("operators", namespace, cluster.options(gpus=True))
    stands: list[pulumi.Resource] = []
    if gpu.feature_discovery:
        discovery = FeatureDiscoveryArgs(
            chart=mirror.chart(catalogue.find_chart("node-feature-discovery", gpu.feature_discovery_version)),
            namespace=operators.name,
            placement=placed,
        )
        stands = [FeatureDiscovery("feature-discovery", discovery, cluster.options())]
    if has_ports:
        software = catalogue.entry(catalogue.NIC_SOFTWARE, operator=gpu.fabric.operator_version)
        network = NetworkOperatorArgs(
            chart=mirror.chart(catalogue.find_chart("network-operator", gpu.fabric.operator_version)),
            images=replace(
                software,
                driver=mirror.image(software.with_driver(gpu.fabric.driver_version)),
                sriov_plugin=mirror.image(software.sriov_plugin),
                shared_plugin=mirror.image(software.shared_plugin),
            ),
            namespace=operators.name,
            placement=placed,
            device_plugin=gpu.fabric.device_plugin,
            wait=inputs.resolved.nodes_at_first > 0,
            wait_seconds=gpu.fabric.wait_minutes * 60,
            drain=gpu.drain_for_drivers,
        )
        stands = [NetworkOperator("network-operator", network, cluster.options(*stands))]
    if gpu.operator:
        operator = GpuOperatorArgs(
            chart=mirror.chart(catalogue.find_chart("gpu-operator", gpu.operator_version)),
            namespace=operators.name,
            placement=placed,
            brings_driver=gpu.install_driver,
            brings_toolkit=gpu.install_toolkit,
            driver_version=gpu.driver_version,
            hand_out=HandOut.MOUNTS if gives_by_mounts(inputs.settings) else HandOut.CDI,
            rdma=has_ports and gpu.install_driver,
            drain=gpu.drain_for_drivers,
            monitor_labels=MONITOR_LABELS if metrics is not None else None,
        )
        monitored = [metrics] if metrics is not None else []
        stands = [GpuOperator("gpu-operator", operator, cluster.options(*stands, *monitored))]
    return stands


def _nvshare(
    inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers, operators: Sequence[pulumi.Resource]
) -> Nvshare:
    """Register NVshare, and the pods that try it out; return it."""
    settings, image = inputs.settings.nvshare, inputs.mirror.image
    namespace = NamespaceArgs(name=nvshare.NAMESPACE, privileged=True, critical=True)
    home = Namespace("nvshare-system", namespace, cluster.options(gpus=True))
    args = NvshareArgs(
        namespace=home.name,
        images=NvshareImages(
            library=image(catalogue.NVSHARE_LIBRARY.reference),
            plugin=image(catalogue.NVSHARE_PLUGIN.reference),
            scheduler=image(catalogue.NVSHARE_SCHEDULER.reference),
        ),
        nodes=site.kept_usable(cluster.placement.gpus),
        virtual_gpus=settings.virtual_gpus,
    )
    shared = Nvshare("nvshare", args, cluster.options(*operators))
    if settings.verification.enabled:
        test = NvshareVerificationArgs(
            namespace=home.name,
            image=image(catalogue.NVSHARE_MATMUL.reference),
            nodes=cluster.placement.gpus,
            timeout_seconds=settings.verification.timeout_seconds,
        )
        NvshareVerification("nvshare-verification", test, cluster.options(shared))
    return shared


def _agents(inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers) -> None:
    scratch = inputs.settings.gpu.nvme_scratch
    if not (scratch.enabled or site.has_node_agents):
        return
    args = NamespaceArgs(name=node_agent.NAMESPACE, privileged=True, critical=True)
    agents = Namespace("agents", args, cluster.options(gpus=True))
    site.node_agents(agents)
    if scratch.enabled:
        python = inputs.mirror.image(catalogue.PYTHON.reference)
        disks = NvmeScratchArgs(
            namespace=agents.name,
            image=python,
            folder=scratch.folder,
            filesystem=scratch.filesystem,
            nodes=site.kept_usable(site.scratch_nodes or cluster.placement.gpus),
            disk_model=scratch.disk_model or "",
        )
        NvmeScratch("nvme-scratch", disks, cluster.options())
