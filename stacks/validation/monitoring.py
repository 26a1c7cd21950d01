"""Checks that monitoring has its sources, once each, and that receivers of alerts have their secrets."""

from collections.abc import Iterator

from components import names
from stacks.config.errors import ConfigError, key
from stacks.config.secrets import ALERT_ADDRESSES
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.monitoring import MonitoringSettings


def check(partial: PartialSettings, monitoring: MonitoringSettings) -> Iterator[ConfigError]:
    """Yield errors of receivers without secrets, dashboards without data and duplicate sources."""
    if not monitoring.enabled:
        return
    yield from _unreachable(partial, monitoring)
    gpu, health = partial.section(GpuSettings), partial.section(HealthSettings)
    if gpu is None:
        return
    yield from _twice(partial, monitoring, gpu)
    if monitoring.published_dashboards and health is not None:
        yield from _empty(monitoring, gpu, health)


def warnings(partial: PartialSettings, monitoring: MonitoringSettings) -> Iterator[str]:
    """Yield warnings about unused secrets, and about missing alerts and dashboards."""
    if not monitoring.enabled:
        return
    kinds = {receiver.kind for receiver in monitoring.receivers}
    receivers = key(("monitoring", "receivers"))
    for kind, name in ALERT_ADDRESSES.items():
        if name in partial.secrets and kind not in kinds:
            yield f"{key((name,))} is set but unused: {receivers} has no receiver of kind {kind}"
    if kinds and not monitoring.alerts:
        yield (
            f"mlbatch:monitoring.alerts is false: {receivers} get only the alerts of the chart "
            "kube-prometheus-stack, and none about GPUs, queues and health checks"
        )
    if (monitoring.alerts or monitoring.dashboards) and _lacks_gpu_metrics(partial, monitoring):
        yield (
            "Prometheus has no GPU metrics: the GPU dashboard and the alerts on single GPUs are left out. "
            "Set mlbatch:monitoring.gpuOperatorNamespace to the namespace of the cluster's GPU operator, such "
            "as gpu-operator, or let the stack install one (mlbatch:gpu.operator)"
        )


def _lacks_gpu_metrics(partial: PartialSettings, monitoring: MonitoringSettings) -> bool:
    """Return whether there are GPUs without metrics."""
    gpu, pool = partial.section(GpuSettings), partial.pool
    has_gpus = pool is None or pool.shape.resources[names.GPU].nano > 0
    return gpu is not None and has_gpus and not monitoring.has_gpu_metrics(gpu)


def _unreachable(partial: PartialSettings, monitoring: MonitoringSettings) -> Iterator[ConfigError]:
    for index, receiver in enumerate(monitoring.receivers):
        if (name := ALERT_ADDRESSES[receiver.kind]) not in partial.secrets:
            yield ConfigError(
                ("monitoring", "receivers", index, "kind"),
                f"this receiver needs the secret {key((name,))}, which is missing",
                f"run `pulumi config set --secret {key((name,))}`, which asks for it, or remove "
                f"{key(('monitoring', 'receivers', index))}",
            )


def _empty(monitoring: MonitoringSettings, gpu: GpuSettings, health: HealthSettings) -> Iterator[ConfigError]:
    """Yield the error of published dashboards without data: one needs Autopilot, the other GPU metrics."""
    operator = key(("monitoring", "gpuOperatorNamespace"))
    sources = {
        key(("health", "autopilot", "enabled")): health.autopilot.enabled,
        f"mlbatch:gpu.operator (or {operator} where the cluster has one)": monitoring.has_gpu_metrics(gpu),
    }
    if lacking := [name for name, is_there in sources.items() if not is_there]:
        yield ConfigError(
            ("monitoring", "publishedDashboards"),
            "dashboards 23123 and 12239 need Autopilot's checks and the GPU operator's metrics, and one of "
            "the two is missing",
            f"set {lacking[0]} to true, or remove the key; the platform's own dashboards show the available metrics",
            expected=" and ".join(lacking),
        )


def _twice(partial: PartialSettings, monitoring: MonitoringSettings, gpu: GpuSettings) -> Iterator[ConfigError]:
    """Yield the error of an existing GPU operator next to the stack's, or in a namespace where it cannot be."""
    if monitoring.gpu_operator_namespace is None:
        return
    if gpu.brings_metrics:
        yield ConfigError(
            ("monitoring", "gpuOperatorNamespace"),
            "the stack installs a GPU operator (mlbatch:gpu.operator) and already reads its metrics",
            "remove the key, or set mlbatch:gpu.operator to false if the cluster has its own operator",
        )
    if monitoring.gpu_operator_namespace in partial.team_names:
        yield ConfigError(
            ("monitoring", "gpuOperatorNamespace"),
            "this is a team's namespace, where members could fake GPU metrics",
            "write the namespace that `kubectl get clusterpolicies,daemonsets --all-namespaces` shows",
        )
