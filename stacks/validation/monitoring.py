"""Whether what is to be watched is there, once, and whoever is to be told can be."""

from __future__ import annotations

from collections.abc import Iterator

from components import names
from stacks.config.errors import ConfigError, key
from stacks.config.secrets import ALERT_ADDRESSES
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.monitoring import MonitoringSettings


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield receivers that cannot be reached, dashboards that would stay empty, and what would be watched twice."""
    monitoring = partial.section(MonitoringSettings)
    if monitoring is None or not monitoring.enabled:
        return
    yield from _unreachable(partial, monitoring)
    gpu, health = partial.section(GpuSettings), partial.section(HealthSettings)
    if gpu is None:
        return
    yield from _twice(partial, monitoring, gpu)
    if monitoring.published_dashboards and health is not None:
        yield from _empty(monitoring, gpu, health)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield secrets that tell nobody, and what is shown or told less of than somebody may wait for."""
    monitoring = partial.section(MonitoringSettings)
    if monitoring is None or not monitoring.enabled:
        return
    kinds = {receiver.kind for receiver in monitoring.receivers}
    receivers = key(("monitoring", "receivers"))
    for kind, name in ALERT_ADDRESSES.items():
        if name in partial.secrets and kind not in kinds:
            yield f"{key((name,))} is set, and nobody is told there: {receivers} has no receiver of kind {kind}"
    if kinds and not monitoring.alerts:
        yield (
            f"{key(('monitoring', 'alerts'))} is false, so that {receivers} are told the alerts of the chart "
            "kube-prometheus-stack alone, and nothing of GPUs, queues and health checks"
        )
    if (monitoring.alerts or monitoring.dashboards) and _lacks_gpu_metrics(partial, monitoring):
        yield (
            "nothing reads the metrics of GPUs, so that their dashboard and the alerts on single GPUs are left out: "
            f"set {key(('monitoring', 'gpuOperatorNamespace'))} to the namespace of the cluster's GPU operator, such "
            f"as gpu-operator, or have the stack install one ({key(('gpu', 'operator'))})"
        )


def _lacks_gpu_metrics(partial: PartialSettings, monitoring: MonitoringSettings) -> bool:
    """Return whether there are GPUs that nobody watches."""
    gpu, pool = partial.section(GpuSettings), partial.pool
    has_gpus = pool is None or pool.shape.resources[names.GPU].nano > 0
    return gpu is not None and has_gpus and not monitoring.has_gpu_metrics(gpu)


def _unreachable(partial: PartialSettings, monitoring: MonitoringSettings) -> Iterator[ConfigError]:
    for index, receiver in enumerate(monitoring.receivers):
        if (name := ALERT_ADDRESSES[receiver.kind]) not in partial.secrets:
            yield ConfigError(
                path=("monitoring", "receivers", index, "kind"),
                value=receiver.kind,
                message=f"where this receiver is told is a secret of the stack, {key((name,))}, and there is none",
                expected="a receiver with its secret",
                hint=f"run `pulumi config set --secret {key((name,))}`, which asks for it, or remove the receiver",
            )


def _empty(monitoring: MonitoringSettings, gpu: GpuSettings, health: HealthSettings) -> Iterator[ConfigError]:
    """Yield published dashboards that nothing would be shown in: one reads Autopilot, the other GPU metrics."""
    operator = key(("monitoring", "gpuOperatorNamespace"))
    sources = {
        key(("health", "autopilot", "enabled")): health.autopilot.enabled,
        f"{key(('gpu', 'operator'))} (or {operator} where the cluster has one)": monitoring.has_gpu_metrics(gpu),
    }
    if lacking := [name for name, is_there in sources.items() if not is_there]:
        yield ConfigError(
            path=("monitoring", "publishedDashboards"),
            value=True,
            message="dashboards 23123 and 12239 show Autopilot's checks and the GPU operator's metrics, and one of "
            "the two is not there",
            expected=" and ".join(lacking),
            hint="set that, or remove the key: the platform's own dashboards show what there is",
        )


def _twice(partial: PartialSettings, monitoring: MonitoringSettings, gpu: GpuSettings) -> Iterator[ConfigError]:
    """Yield a GPU operator that is said to be there beside one that the stack installs, or where it cannot be."""
    if monitoring.gpu_operator_namespace is None:
        return
    if gpu.brings_metrics:
        yield ConfigError(
            path=("monitoring", "gpuOperatorNamespace"),
            value=monitoring.gpu_operator_namespace,
            message=f"{key(('gpu', 'operator'))} has the stack install one, whose metrics are read by itself",
            expected="no namespace with that operator",
            hint="remove the key, or switch the operator off where the cluster has its own",
        )
    if monitoring.gpu_operator_namespace in partial.team_names:
        yield ConfigError(
            path=("monitoring", "gpuOperatorNamespace"),
            value=monitoring.gpu_operator_namespace,
            message="this is the namespace of a team, whose members could show any figures as those of the GPUs",
            expected="the namespace of the cluster's GPU operator",
            hint="write the namespace that `kubectl get clusterpolicies,daemonsets --all-namespaces` shows",
        )
