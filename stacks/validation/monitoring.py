"""Whether what is to be watched is there once."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.errors import ConfigError, key
from stacks.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.monitoring import MonitoringSettings


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield a GPU operator that is said to be there beside one that the stack installs, or where it cannot be."""
    monitoring, gpu = partial.section(MonitoringSettings), partial.section(GpuSettings)
    if monitoring is None or gpu is None or not monitoring.enabled:
        return
    if monitoring.gpu_operator_namespace is not None and gpu.operator:
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
