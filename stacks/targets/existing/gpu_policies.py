"""Checks of the cluster's own GPU operator: GPUs without a request, and health checks that see no GPUs."""

from collections.abc import Iterator
from typing import Final

from components.health import autopilot
from components.nodes.gpu_operator import BY_MOUNT, BY_VARIABLE
from stacks.config.cluster_facts import GpuPolicy
from stacks.config.errors import key
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.tenancy import QueueingSettings

_GUARDED: Final = ("health", "autopilot", "guardedGpus")
_RUNTIME: Final = ("health", "autopilot", "runtimeClass")


def warnings(partial: PartialSettings, gpu: GpuSettings) -> Iterator[str]:
    """Yield warnings about the settings of an existing GPU operator. The stack configures its own correctly."""
    if gpu.operator or partial.facts is None:
        return
    for policy in partial.facts.gpu_policies:
        yield from _open(partial, policy)
        yield from _unseen(partial, policy)


def _open(partial: PartialSettings, policy: GpuPolicy) -> Iterator[str]:
    """Yield a warning about a policy that gives a pod GPUs without a request."""
    queueing, nvshare = partial.section(QueueingSettings), partial.section(NvshareSettings)
    if queueing is None or not queueing.enabled:
        return
    shares = nvshare is not None and nvshare.enabled
    obeyed = {
        BY_VARIABLE: policy.by_variable,
        BY_MOUNT: policy.by_mount and not shares,  # by mounts NVshare's plugin hands on
    }
    left = [name for name, is_obeyed in obeyed.items() if is_obeyed]
    if left:
        yield (
            f"the GPU operator's ClusterPolicy {policy.name} lets a pod use GPUs that it does not request, and that "
            f'queues do not count: set {" and ".join(left)} to "false" in its spec.toolkit.env (docs/existing.md)'
        )


def _unseen(partial: PartialSettings, policy: GpuPolicy) -> Iterator[str]:
    """Yield a warning if Autopilot's pods see no GPUs and so cannot mark nodes."""
    health = partial.section(HealthSettings)
    if health is None or not health.autopilot.enabled:
        return
    own = health.autopilot
    lacks = {
        f"{key(_RUNTIME)}: {autopilot.RUNTIME_CLASS}": policy.cdi and own.runtime_class is None,
        f"{key(_GUARDED)}: true": not policy.by_variable and not own.guarded_gpus,
    }
    missing = [setting for setting, is_missing in lacks.items() if is_missing]
    if missing:
        yield (
            f"Autopilot's pods see no GPUs with the GPU operator's ClusterPolicy {policy.name}, and cannot mark nodes: "
            f"set {' and '.join(missing)}"
        )
