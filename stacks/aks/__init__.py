"""Target `aks`: the platform on Azure Kubernetes Service, with H100 nodes. Reads from the ground up.

After edwardsp/ai-on-aks, with what MLBatch adds: teams, quotas, borrowing, recovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components import catalogue
from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup, Placement
from components.kubernetes.provider import kubernetes_provider
from components.nodes.placement import GPU_NODES, SYSTEM_NODES
from components.observability.alerts import Alerts, AlertsArgs
from components.observability.dashboards import Dashboards, DashboardsArgs
from components.observability.prometheus import MONITOR_LABELS, KueueMonitor, Monitoring, MonitoringArgs
from components.passwords import password
from components.scheduling.volcano import Volcano, VolcanoArgs
from components.storage.storage_classes import FILES, FILES_NFS
from stacks import batch
from stacks.aks import infrastructure, machines, volumes
from stacks.aks.health import checks
from stacks.aks.workloads import Workloads
from stacks.load import GRAFANA_PASSWORD, Stack
from stacks.outputs import outputs
from stacks.settings.azure import AzureSettings


def deploy(stack: Stack) -> Mapping[str, Any]:
    """Register the platform and return the stack's outputs; raises ArtefactError before the first resource."""
    settings, mirror = stack.settings, stack.mirror
    assert isinstance(settings.azure, AzureSettings)
    files = batch.releases(settings, mirror) if settings.queueing.enabled else None

    # Azure: resource group, network, registry, cluster, GPU nodes, storage account
    azure = infrastructure.create(settings.azure, settings.storage.volumes)
    cluster = Cluster(
        identifier=azure.identifier,
        provider=kubernetes_provider("cluster", kubeconfig=azure.kubeconfig, identifier=azure.identifier),
        kubernetes_version=settings.azure.kubernetes_version,
        pool=settings.pool,
        placement=Placement(
            system=NodeGroup(node_selector=SYSTEM_NODES),
            gpus=NodeGroup(
                node_selector=GPU_NODES, tolerations=[GPU_TOLERATION] if settings.azure.gpu_pool.taint else []
            ),
        ),
        fabric=machines.fabric(settings),
        storage=StorageClasses(block="managed-csi-premium", files=FILES, logs=FILES_NFS),
        registry=azure.registry,
        load_balancer={"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
        deleted_with=azure.cluster,
        ready=azure.ready,
        gpus_ready=azure.pool,
    )
    on = cluster.options

    # Monitoring: first, because the operators below ask for its kinds
    monitoring = None
    if settings.monitoring.enabled:
        grafana = password("grafana", stack.secrets.get(GRAFANA_PASSWORD))
        stack_args = MonitoringArgs(
            chart=mirror.chart(catalogue.find_chart("kube-prometheus-stack", settings.monitoring.version)),
            grafana_password=grafana,
            storage=settings.monitoring.storage,
            storage_class=settings.monitoring.storage_class,
            retention_days=settings.monitoring.retention_days,
        )
        monitoring = Monitoring("monitoring", stack_args, on())
        if settings.monitoring.dashboards:
            Dashboards("dashboards", DashboardsArgs(namespace=monitoring.namespace), on(monitoring))
        if settings.monitoring.alerts:
            alerts = AlertsArgs(namespace=monitoring.namespace, labels=MONITOR_LABELS)
            Alerts("alerts", alerts, on(monitoring))

    # GPUs, InfiniBand, local disks
    nodes = machines.prepare(settings, mirror, cluster, monitoring)

    # Queueing and tenancy
    queues = batch.Batch()
    if files is not None:
        queues = batch.install(settings, mirror, files, cluster, on, ())
        if monitoring is not None:
            KueueMonitor("kueue-monitor", on(monitoring, *queues.ready))

    # The namespace of what no team submits, and Volcano for it
    namespace = Namespace("workloads", NamespaceArgs(name=settings.workloads.namespace), on())
    volcano = None
    if settings.volcano.enabled:
        volcano_args = VolcanoArgs(
            chart=mirror.chart(catalogue.find_chart("volcano", settings.volcano.version)),
            namespace=settings.workloads.namespace,
            queue=settings.volcano.queue,
            launcher_view=settings.volcano.launcher_view,
        )
        volcano = Volcano("volcano", volcano_args, on(namespace))

    # Storage
    data = volumes.mount(stack, azure, namespace, queues, on)

    # Health and workloads
    checks(settings, mirror, azure, nodes, on)
    Workloads(stack, azure, nodes, queues, namespace, volcano, data, on).submit()

    return {**outputs(settings), **azure.outputs()}
