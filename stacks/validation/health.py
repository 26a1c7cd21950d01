"""Checks that the health checks can pass: existing nodes, and thresholds that nodes can reach."""

from collections.abc import Iterator

from components import names
from components.health import autopilot
from components.health.thresholds import Scope
from components.kubernetes.node_pool import NodePool
from stacks.config.errors import ConfigError, Path, counted, key
from stacks.derived.partial import PartialSettings
from stacks.settings import machines
from stacks.settings.health import AutopilotSettings, CheckSettings, HealthSettings, NcclGateSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.recovery import RecoverySettings
from stacks.settings.tenancy import QueueingSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.validation.admission import count_key, no_image


def check(partial: PartialSettings, settings: HealthSettings) -> Iterator[ConfigError]:
    """Yield errors of the health checks."""
    pool = partial.pool
    for name, item in settings.checks().items():
        if pool is not None and item.enabled:
            yield from _nodes(partial, ("health", name), item, pool)
    if settings.nccl_gate.enabled:
        yield from _image(partial, settings.nccl_gate)
        yield from _threshold(settings.nccl_gate, pool)
        yield from _fabric(partial, settings.nccl_gate, pool)
    if settings.autopilot.enabled:
        pools = (each.pool for each in partial.every_pool)
        least = min((each for each in pools if each is not None), key=_gpus, default=None)
        if least is not None:
            yield from _deep_check(settings.autopilot, least)


def warnings(partial: PartialSettings, recovery: RecoverySettings) -> Iterator[str]:
    """Yield a warning about a repair controller that is not installed, or that sees no alerts."""
    queueing, monitoring = partial.section(QueueingSettings), partial.section(MonitoringSettings)
    if not recovery.repair.enabled:
        return
    if queueing is not None and not queueing.enabled:
        yield "mlbatch:queueing.enabled is false, so the repair controller (mlbatch:recovery.repair) is not installed"
    elif monitoring is not None and not (monitoring.enabled and monitoring.alerts):
        switch = "alerts" if monitoring.enabled else "enabled"
        yield (
            f"mlbatch:monitoring.{switch} is false, so the repair controller (mlbatch:recovery.repair) sees no alerts. "
            "It only sees node conditions of AKS Node Problem Detector and NVSentinel, if they run in the cluster"
        )


def _gpus(pool: NodePool) -> int:
    return pool.shape.resources[names.GPU].nano


def _deep_check(item: AutopilotSettings, pool: NodePool) -> Iterator[ConfigError]:
    """Yield the error of a deep check that needs more GPUs than a node has: the node would keep the mark TESTING."""
    gpus, wanted = pool.shape.resources[names.GPU], autopilot.DEEP_CHECK_GPUS
    if item.deep_check_hours and gpus.nano < wanted * 10**9:
        yield ConfigError(
            ("health", "autopilot", "deepCheckHours"),
            f"Autopilot's deep check requests {wanted} GPUs, but a node has {gpus}: the check could not start "
            "and would block the nodes",
            "set it to 0; the regular checks still run",
        )


def _nodes(partial: PartialSettings, path: Path, item: CheckSettings, pool: NodePool) -> Iterator[ConfigError]:
    if item.nodes is not None and item.nodes > pool.count:
        yield ConfigError(
            (*path, "nodes"),
            f"there {'is' if pool.count == 1 else 'are'} {counted(pool.count, 'GPU node')}",
            f"raise {count_key(partial)}, or remove the key; the default is all nodes",
        )
    elif pool.count == 0:
        yield ConfigError(
            (*path, "enabled"), "there are no GPU nodes to check", f"set it to false, or raise {count_key(partial)}"
        )


def _image(partial: PartialSettings, item: NcclGateSettings) -> Iterator[ConfigError]:
    """Yield the error of a gate that runs the NCCL test's image without a registry to pull it from."""
    workloads = partial.section(WorkloadsSettings)
    own = partial.target.node_check_image(partial) if partial.target is not None else None
    runs_test = item.scope is Scope.FABRIC or own is None
    if workloads is not None and runs_test and not workloads.nccl.enabled:
        yield from no_image(partial, ("workloads", "nccl"), workloads.nccl)


def _threshold(item: NcclGateSettings, pool: NodePool | None) -> Iterator[ConfigError]:
    path: Path = ("health", "ncclGate")
    known = machines.threshold(pool.shape.instance_type, item.scope) if pool is not None else None
    if pool is not None and known is None:
        for name, value in (("warnGbs", item.warn_gbs), ("failGbs", item.fail_gbs)):
            if value is None:
                yield ConfigError(
                    (*path, name),
                    f"there is no default all-reduce bandwidth for {pool.shape.instance_type}",
                    f"measure your machines and set {key((*path, name))} to the result in GB/s, less a tolerance",
                )
    for name, value in (("failGbs", item.fail_gbs), ("warnGbs", item.warn_gbs)):
        if value is not None and known is not None and value > known.expected:
            yield ConfigError(
                (*path, name),
                f"a healthy machine of this type reaches {known.expected:g} GB/s: every node would fail or "
                "get a warning",
                "lower it, or remove the key; the default is the machine type's own",
            )
            return
    warn = item.warn_gbs if item.warn_gbs is not None else known.warn if known else None
    fail = item.fail_gbs if item.fail_gbs is not None else known.fail if known else None
    if warn is not None and fail is not None and warn < fail:
        named = "warnGbs" if item.warn_gbs is not None else "failGbs"
        yield ConfigError(
            (*path, named),
            f"failGbs ({fail:g} GB/s) is above warnGbs ({warn:g})",
            "raise mlbatch:health.ncclGate.warnGbs or lower mlbatch:health.ncclGate.failGbs",
        )


def _fabric(partial: PartialSettings, item: NcclGateSettings, pool: NodePool | None) -> Iterator[ConfigError]:
    path: Path = ("health", "ncclGate")
    own = partial.target.node_check_image(partial) if partial.target is not None else None
    workloads = partial.section(WorkloadsSettings)
    lacks_tag = workloads is not None and workloads.nccl.tag is None
    if item.scope is not Scope.FABRIC:
        if own is None and lacks_tag:
            yield ConfigError(
                ("workloads", "nccl", "tag"),
                "the gate runs the NCCL test's image, which has no tag",
                "set mlbatch:workloads.nccl.tag, or mlbatch:health.ncclGate.enabled to false",
            )
        return
    if partial.fabric is not None and partial.fabric.resource is None:
        yield ConfigError(
            (*path, "scope"),
            "the check measures an RDMA network between the nodes, and there is none",
            "set mlbatch:health.ncclGate.scope to node, or mlbatch:gpu.fabric.enabled to true",
        )
        return
    count = item.nodes if item.nodes is not None else pool.count if pool is not None else None
    if count is not None and count < 2:
        yield ConfigError(
            (*path, "scope"),
            "a fabric test needs at least two nodes: on one node it is skipped, and does not pass",
            "set mlbatch:health.ncclGate.scope to node, or test at least 2 nodes (mlbatch:health.ncclGate.nodes)",
        )
    if lacks_tag:
        yield ConfigError(
            ("workloads", "nccl", "tag"),
            "the gate over several nodes runs the NCCL test's image, which has no tag",
            "set mlbatch:workloads.nccl.tag, or mlbatch:health.ncclGate.scope to node",
        )
