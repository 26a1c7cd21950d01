"""Checks that NVshare can share the GPUs, and that jobs and quotas use the resource that it offers."""

from collections.abc import Iterator, Mapping

from components import names
from components.kubernetes.quantity import ZERO, Quantity
from stacks.config.errors import ConfigError, Path, key
from stacks.derived.partial import PartialSettings
from stacks.settings.health import CheckSettings, HealthSettings
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.tenancy import LimitSettings, QuotaSettings
from stacks.settings.workloads import NodeWorkloadSettings, WorkloadsSettings
from stacks.validation.walk import sections

_SWITCH: Path = ("nvshare", "enabled")
_STRATEGY = "nvidia.com/gpu.sharing-strategy"
_MIG = "nvidia.com/mig-"
"""Node labels of GPUs that are divided or shared in another way (NVIDIA/k8s-device-plugin,
docs/gpu-feature-discovery)."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of amounts of a resource that no node offers, and of nodes whose GPUs cannot be shared."""
    settings = partial.section(NvshareSettings)
    is_on = settings is not None and settings.enabled
    for path, amounts in sections(partial):
        if isinstance(amounts, QuotaSettings | LimitSettings):
            yield from _offered(path, amounts, is_on)
    if is_on:
        yield from _nodes(partial)
        yield from _whole_nodes(partial)
        yield from _several(partial)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield a warning that NVshare does not isolate teams from each other.

    Source: grgalex/nvshare, src/scheduler.c (process_msg; any process can write to the socket) and
    kubernetes/device-plugin/server.go (Allocate), which mounts that socket and the library into each pod.
    """
    settings = partial.section(NvshareSettings)
    teams = len(partial.known_teams)
    if settings is not None and settings.enabled and teams > 1:
        yield (
            f"{key(_SWITCH)} is true, and {teams} teams share GPUs, but NVshare is for pods that trust each other. Any "
            "pod can switch off the time slices for all, skip NVshare's library and use all memory of the GPU. Quotas "
            f"of {names.SHARED_GPU} limit the number of pods only"
        )


def _offered(path: Path, amounts: QuotaSettings | LimitSettings, is_on: bool) -> Iterator[ConfigError]:
    given: Mapping[str, Quantity | None] = {names.GPU: amounts.gpu, names.SHARED_GPU: amounts.shared_gpu}
    wrong, right = (names.GPU, names.SHARED_GPU) if is_on else (names.SHARED_GPU, names.GPU)
    amount = given[wrong]
    if amount is not None and amount.nano:
        yield ConfigError(
            (*path, wrong),
            f"pods request {right} on these nodes: {key(_SWITCH)} is {str(is_on).lower()}",
            f"move the amount to {right}, or set {key(_SWITCH)} to {str(not is_on).lower()}",
        )


def _nodes(partial: PartialSettings) -> Iterator[ConfigError]:
    one = Quantity.parse(1)
    pool = next((each for each in partial.pools if each.count and each.shape.resources[names.GPU] != one), None)
    if pool is not None and pool.shape.resources[names.GPU] == ZERO and partial.target is not None:
        yield ConfigError(_SWITCH, "the nodes have no GPU", f"remove the key, or {partial.target.gpu_advice}")
    elif pool is not None:
        yield ConfigError(
            _SWITCH,
            f"NVshare supports only the first GPU of a node, and these nodes have "
            f"{pool.shape.resources[names.GPU]} each",
            "remove the key; jobs can request single GPUs of a node",
        )
    for node in partial.facts.nodes if partial.facts is not None else ():
        parts = [resource for resource in node.allocatable if resource.startswith(_MIG)]
        strategy = node.labels.get(_STRATEGY, "none")
        if parts or strategy != "none":
            how = f"divided by MIG ({parts[0]})" if parts else f"shared by {strategy} ({_STRATEGY})"
            yield ConfigError(
                _SWITCH,
                f"the GPUs of node {node.name} are already {how}, and NVshare needs whole GPUs",
                "remove the key, or switch time slicing, MPS and MIG off in the GPU operator's ClusterPolicy",
            )
            return


def _whole_nodes(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject jobs and checks that need all GPUs of a node for themselves."""
    for path, section in sections(partial):
        if isinstance(section, NodeWorkloadSettings | CheckSettings) and section.enabled:
            yield ConfigError(
                (*path, "enabled"),
                "this needs whole nodes, but NVshare shares their GPUs among many pods",
                f"set it to false, or remove {key(_SWITCH)}",
            )
    health = partial.section(HealthSettings)
    if health is not None and health.autopilot.enabled and health.autopilot.deep_check_hours:
        yield ConfigError(
            ("health", "autopilot", "deepCheckHours"),
            f"Autopilot's deep check requests {names.GPU}, but NVshare uses them all",
            "set it to 0; the checks of each round run all the same",
        )


def _several(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject pods that request several shares: all shares are of the same GPU."""
    workloads, samples = partial.section(WorkloadsSettings), partial.section(SamplesSettings)
    asked: dict[Path, int] = {}
    if workloads is not None and workloads.vllm.enabled:
        asked[("workloads", "vllm", "gpus")] = workloads.vllm.gpus
    if samples is not None and samples.gang is not None and samples.gang.enabled:
        asked[("samples", "gang", "gpusPerPod")] = samples.gang.gpus_per_pod
    for path, number in asked.items():
        if number != 1:
            yield ConfigError(
                path, f"one {names.SHARED_GPU} gives a pod the whole GPU, and several do not give more", "set it to 1"
            )
