"""Checks that versions of operators, drivers and Kubernetes are compatible, and that quotas match them."""

from collections.abc import Iterator

from components import catalogue, names
from components.compatibility import (
    KUEUE_KUBERNETES,
    MONITORING_KUBERNETES,
    VOLCANO_KUBERNETES,
    Combination,
    Row,
    Verdict,
    assess,
    is_older,
    reclaims_while_borrowing,
)
from components.images import Reference
from components.nodes.network_operator import DevicePlugin
from stacks.config.errors import MISSING, ConfigError, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.tenancy import QueueingSettings, QuotaSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.validation.walk import apply, sections


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of versions that do not work together."""
    yield from apply(partial, _combination, _too_old_for_kueue, _older_kueue, _too_old_for_monitoring)
    yield from apply(partial, _quotas_for_ports, _volcano)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about combinations that are untested or work only partly."""
    return apply(partial, _network_driver, _unknown)


def _unknown(partial: PartialSettings) -> Iterator[str]:
    found = _assessed(partial)
    if found is not None and found[1].verdict is Verdict.UNKNOWN:
        combination, assessment = found
        yield f"{_format(combination)}: {assessment.reason}; {assessment.fix}"


def _network_driver(partial: PartialSettings, gpu: GpuSettings) -> Iterator[str]:
    if not gpu.fabric.enabled or gpu.fabric.driver_version is None:
        return
    own = Reference.parse(catalogue.entry(catalogue.NIC_SOFTWARE, operator=gpu.fabric.operator_version).driver).tag
    if gpu.fabric.driver_version != own:
        yield (
            f"network operator {gpu.fabric.operator_version} was released with driver {own} and is untested with "
            f"{gpu.fabric.driver_version}. Remove mlbatch:gpu.fabric.driverVersion to use driver {own}"
        )


def _combination(partial: PartialSettings) -> Iterator[ConfigError]:
    found = _assessed(partial)
    if found is None or found[1].verdict is not Verdict.BROKEN:
        return
    combination, assessment = found
    yield ConfigError(
        ("gpu", "operatorVersion"),
        f"{_format(combination)} are known not to work: {assessment.reason}",
        assessment.fix,
        expected=f"a combination that works; see {assessment.source}",
    )


def _too_old_for_kueue(partial: PartialSettings, queueing: QueueingSettings) -> Iterator[ConfigError]:
    """Reject a cluster that Kueue does not support, even if the settings accept unenforced promises."""
    cluster = partial.kubernetes_version
    if not queueing.enabled or cluster is None or partial.running_kueue is not None:
        return
    first = KUEUE_KUBERNETES[queueing.kueue_version]
    if is_older(cluster, first):
        yield ConfigError(
            ("queueing", "kueueVersion"),
            f"Kueue {queueing.kueue_version} needs Kubernetes {first} or later, and this cluster has {cluster}",
            "upgrade the cluster, or set mlbatch:queueing.enabled to false and remove the teams",
        )


def _too_old_for_monitoring(partial: PartialSettings, monitoring: MonitoringSettings) -> Iterator[ConfigError]:
    """Reject a cluster if Helm would reject the chart for it late in the deployment."""
    cluster = partial.kubernetes_version
    if not monitoring.enabled or cluster is None:
        return
    if is_older(cluster, MONITORING_KUBERNETES):
        yield ConfigError(
            ("monitoring", "enabled"),
            f"kube-prometheus-stack {monitoring.version} needs Kubernetes {MONITORING_KUBERNETES} or later, "
            f"and this cluster has {cluster}",
            "set it to false, or upgrade the cluster",
        )


def _assessed(partial: PartialSettings) -> tuple[Combination, Row] | None:
    """Return the versions that the stack installs and their assessment, or None if sections are missing.

    None also on a target with certified operators.
    """
    gpu = partial.section(GpuSettings)
    if gpu is None or not gpu.operator or partial.kubernetes_version is None:
        return None
    if partial.target is not None and partial.target.certifies_operators:
        return None
    combination = Combination(
        gpu_operator=gpu.operator_version,
        network_operator=gpu.fabric.operator_version if gpu.fabric.enabled else None,
        driver=gpu.driver,
        kubernetes=partial.kubernetes_version,
        gpu=partial.pool.shape.gpu_product if partial.pool is not None else "",
    )
    return combination, assess(combination, kubernetes=partial.version_key)


def _format(combination: Combination) -> str:
    network = f", network operator {combination.network_operator}" if combination.network_operator else ""
    driver = f"driver {combination.driver}" if combination.driver is not None else "the nodes' own driver"
    return f"GPU operator {combination.gpu_operator}{network}, {driver} and Kubernetes {combination.kubernetes}"


def offers_ports(partial: PartialSettings) -> bool:
    """Whether nodes offer single InfiniBand ports, through the platform's operator or already."""
    gpu = partial.section(GpuSettings)
    if gpu is None or partial.target is None or (gpu.fabric.enabled and gpu.fabric.device_plugin is DevicePlugin.SRIOV):
        return True
    return partial.pool is not None and partial.pool.shape.resources[names.INFINIBAND].nano > 0


def _older_kueue(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of settings that need Kueue v0.19.

    Older versions do not compare shares by flavor, so an owner may wait for its GPUs
    (`pkg/cache/scheduler/fair_sharing.go`). They also lose small amounts of usage, or record none
    (kubernetes-sigs/kueue#13763).
    """
    version = partial.kueue_version
    if partial.target is None or version is None or reclaims_while_borrowing(version):
        return
    own = partial.running_kueue is None
    hint = "remove it, or use a newer Kueue" + (" (mlbatch:queueing.kueueVersion)" if own else "")
    for index, team in partial.numbered_teams:
        if team.user_fair_sharing:
            yield ConfigError(
                ("teams", index, "userFairSharing"),
                f"Kueue {version} does not record the usage of users correctly",
                hint,
            )
    if partial.target.further(partial):
        yield ConfigError(
            (*partial.target.pools_key, 0),
            f"with several node pools, Kueue {version} does not always return GPUs to their owner",
            hint,
            value=MISSING,
        )


def _quotas_for_ports(partial: PartialSettings, gpu: GpuSettings) -> Iterator[ConfigError]:
    """Reject quotas for ports that no node offers: jobs that request them would never start."""
    if offers_ports(partial):
        return
    fabric = gpu.fabric
    because = (
        f"mlbatch:gpu.fabric.devicePlugin is {fabric.device_plugin}, which offers {names.SHARED_INFINIBAND}"
        if fabric.enabled
        else "mlbatch:gpu.fabric.enabled is false"
    )
    for path, quota in sections(partial):
        if isinstance(quota, QuotaSettings) and quota.infiniband.nano:
            yield ConfigError(
                (*path, names.INFINIBAND),
                f"no node offers {names.INFINIBAND}: {because}",
                "remove the key, or set mlbatch:gpu.fabric to enabled with devicePlugin sriov",
            )


def too_new(version: str, kubernetes: str) -> str | None:
    """Return the newest Kubernetes version that a Volcano chart supports, or None if it supports the given one.

    kubernetes: with or without the patch version, such as 1.34 or 1.34.2.
    """
    minor = tuple(int(part) for part in kubernetes.split(".")[:2])
    newest = VOLCANO_KUBERNETES[version]
    return None if minor <= newest else ".".join(str(part) for part in newest)


def _volcano(partial: PartialSettings, volcano: VolcanoSettings) -> Iterator[ConfigError]:
    if volcano.enabled and partial.kubernetes_version is not None:
        problem = volcano_error(volcano.version, partial.kubernetes_version)
        if problem is not None:
            yield problem


def volcano_error(version: str, kubernetes: str) -> ConfigError | None:
    """Return the error of a chart that does not support the cluster's Kubernetes version."""
    newest = too_new(version, kubernetes)
    if newest is None:
        return None
    suited = [known for known in VOLCANO_KUBERNETES if too_new(known, kubernetes) is None]
    return ConfigError(
        ("volcano", "version"),
        f"Volcano {version} supports Kubernetes up to {newest}, this cluster has {kubernetes}",
        f"set mlbatch:volcano.version to {suited[0]}" if suited else "use an older Kubernetes version",
        expected=listed(suited),
    )
