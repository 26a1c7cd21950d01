"""Prometheus, dashboards, alerts."""

from collections.abc import Iterator
from typing import Any

from components import catalogue, names
from components.health import repair
from components.kubernetes.cluster import Cluster
from components.kubernetes.network import Pods
from components.observability import metrics
from components.observability.alerts import OPERATORS, Alerts, AlertsArgs, Watched
from components.observability.dashboards import DASHBOARDS, Dashboards, DashboardsArgs
from components.observability.gpu_operator import GpuOperatorMonitors, GpuOperatorMonitorsArgs
from components.observability.prometheus import MONITOR_LABELS, Monitoring, MonitoringArgs
from components.observability.receivers import Receiver
from components.observability.usage import Usage, UsageArgs
from components.passwords import GRAFANA, password
from components.queueing import jobset, kuberay, trainer, training_operator
from components.queueing.running_kueue import KUEUE
from components.tenancy import slack
from stacks.config.inputs import StackInputs
from stacks.config.secrets import ALERT_ADDRESSES, GRAFANA_PASSWORD
from stacks.layers.releases import Releases
from stacks.layers.site import SiteLayers
from stacks.settings import PlatformSettings


def install(inputs: StackInputs[Any], releases: Releases, cluster: Cluster, site: SiteLayers) -> Monitoring | None:
    """Register the monitoring stack with the platform's own dashboards and alerts; return it where it is wanted."""
    settings = inputs.settings.monitoring
    if not settings.enabled:
        return None
    args = MonitoringArgs(
        chart=inputs.mirror.chart(catalogue.find_chart("kube-prometheus-stack", settings.version)),
        grafana_password=password(GRAFANA, inputs.secrets.get(GRAFANA_PASSWORD)),
        storage=settings.storage,
        storage_class=settings.storage_class or cluster.storage.block,
        receivers=[
            Receiver(kind=item.kind, address=inputs.secrets[ALERT_ADDRESSES[item.kind]], least=item.severity)
            for item in settings.receivers
        ],
        alertmanager_storage=settings.alertmanager_storage,
        grafana_storage=settings.grafana_storage,
        retention_days=settings.retention_days,
        namespace=settings.namespace,
        definitions=settings.definitions,
        node_exporter_port=settings.node_exporter_port,
        pod_security=cluster.pod_security,
        privileged=site.privileged_monitoring,
        nodes=cluster.placement.system,
        closed=inputs.settings.tenancy.network.enabled,
        kueue_api=cluster.kueue_api,
        gpu_resource=cluster.gpu_resource,
        alert_readers=[Pods(namespace=names.SYSTEM_NAMESPACE, labels=repair.LABELS)] if site.has_repairs else [],
    )
    monitoring = Monitoring("monitoring", args, cluster.options())
    watched = Watched(
        gpu_resource=cluster.gpu_resource,
        has_gpu_metrics=settings.has_gpu_metrics(inputs.settings.gpu),
        gpus_per_node=_gpus(cluster),
        has_autoscaler=any(pool.minimum is not None for pool in cluster.pools),
        controllers=tuple(_controllers(inputs, releases)),
        others_kueue=inputs.resolved.running_kueue,
    )
    if settings.dashboards or releases.dashboards:
        shown = DashboardsArgs(
            namespace=monitoring.namespace,
            dashboards=DASHBOARDS if settings.dashboards else (),
            published=releases.dashboards,
            gpu_resource=cluster.gpu_resource,
            tolerated=[each["key"] for each in cluster.placement.gpus.tolerations if "key" in each],
            lacking=set(_lacking(inputs.settings, watched)),
        )
        Dashboards("dashboards", shown, cluster.options(monitoring))
    if settings.gpu_operator_namespace is not None:
        gpus = GpuOperatorMonitorsArgs(namespace=monitoring.namespace, operator=settings.gpu_operator_namespace)
        GpuOperatorMonitors("gpu-operator-monitors", gpus, cluster.options(monitoring))
    if watched.has_queues:
        records = UsageArgs(namespace=monitoring.namespace, labels=MONITOR_LABELS, gpu_resource=cluster.gpu_resource)
        Usage("usage", records, cluster.options(monitoring))
    if settings.alerts:
        alerts = AlertsArgs(
            namespace=monitoring.namespace, labels=MONITOR_LABELS, watched=watched, runbooks=settings.runbooks
        )
        Alerts("alerts", alerts, cluster.options(monitoring))
    return monitoring


def _controllers(inputs: StackInputs[Any], releases: Releases) -> Iterator[str]:
    """Yield the Deployments that the stack has in mlbatch-system."""
    if not inputs.settings.queueing.enabled:
        return
    yield from (name for name in OPERATORS if name != KUEUE or releases.kueue is not None)
    if releases.job_set is not None:
        yield jobset.NAME
    if releases.training_operator is not None:
        yield training_operator.NAME
    if releases.trainer_kinds:
        yield trainer.NAME
    if releases.ray_role is not None:
        yield kuberay.NAME
    if inputs.settings.tenancy.enabled:
        yield slack.CONTROLLER
    if inputs.settings.recovery.repair.enabled:
        yield repair.CONTROLLER


def _lacking(settings: PlatformSettings, watched: Watched) -> Iterator[str]:
    """Yield the metrics of what the stack does not have."""
    if not watched.has_gpu_metrics:
        yield from (field.name for field in metrics.DCGM_FIELDS)
    if not watched.controllers:
        yield from (*metrics.KUEUE_METRICS, *metrics.APPWRAPPER_METRICS, *metrics.OBJECT_METRICS, *metrics.RECORDED)
    if not watched.has_slack:
        yield from metrics.SLACK_METRICS
    if not settings.health.autopilot.enabled:
        yield from metrics.AUTOPILOT_METRICS


def _gpus(cluster: Cluster) -> int | None:
    """Return how many GPUs each node should have, None where pools differ.

    Of nodes that were asked, a broken one would be the norm.
    """
    found = {None if pool.is_read else int(pool.shape.resources[names.GPU].nano // 10**9) for pool in cluster.pools}
    return found.pop() if len(found) == 1 else None
