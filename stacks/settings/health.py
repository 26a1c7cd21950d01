"""Checks of the GPU nodes, run when their trigger changes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from components.health import autopilot
from components.health.thresholds import Scope, Threshold
from components.kubernetes.node_pool import NodePool
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings import machines
from stacks.settings.limits import MOST_NODES
from stacks.settings.model import SettingsModel, choice
from stacks.settings.names import ClassName, RuntimeClassName

MOST_GBS: Final = 10000
_OWN: Final = "the stack's settings"


class Mode(StrEnum):
    """What becomes of a verdict."""

    CHECK = "check"
    GATE = "gate"


class CheckSettings(SettingsModel):
    """Keys that all checks have. A check waits for a busy node until its deadline."""

    enabled: bool = False
    """Run the check."""
    trigger: Annotated[str, Field(min_length=1, max_length=63)] = "1"
    """Any text. Change it to run the check again."""
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] | None = None
    """Number of nodes to check. Default: all nodes of the pool."""
    mode: Mode = Mode.CHECK
    """`check` prints the verdict. `gate` also labels the node with it, and taints a node that failed."""
    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """Effect of the taint on a node that failed. NoExecute evicts its pods."""
    report_to_queues: bool = True
    """Also report failed nodes to AppWrapper and the slack queue."""
    deadline_seconds: Annotated[int, Field(ge=300, le=24 * 3600)] = 3600
    """Maximum seconds for the check, including the wait for a busy node."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.mode is Mode.CHECK and self.effect != "NoSchedule":
            yield ConfigError(
                (*path, "effect"),
                "only a check with mode gate taints nodes",
                f"remove the key, or set {key((*path, 'mode'))} to gate",
            )


class NcclGateSettings(CheckSettings):
    """An NCCL all-reduce test against a threshold."""

    scope: Scope = Scope.NODE
    """`node` tests each node alone. `fabric` tests all nodes together. Both use the image of mlbatch:workloads.nccl,
    unless the target has its own image for a single node.
    """
    warn_gbs: Annotated[int, Field(ge=1, le=MOST_GBS)] | None = None
    """Bus bandwidth in GB/s. Below it the verdict is warn. Default: that of the machine type."""
    fail_gbs: Annotated[int, Field(ge=1, le=MOST_GBS)] | None = None
    """Bus bandwidth in GB/s. Below it the verdict is fail. Default: that of the machine type."""

    def threshold(self, pool: NodePool) -> Threshold | None:
        """Return what an all-reduce has to reach, None where neither the settings nor the machine type say."""
        known = machines.threshold(pool.shape.instance_type, self.scope)
        warn, fail = self.warn_gbs, self.fail_gbs
        if warn is not None and fail is not None:
            return Threshold(expected=known.expected if known else warn, warn=warn, fail=fail, source=_OWN)
        if known is None or (warn is None and fail is None):
            return known
        return replace(
            known,
            warn=known.warn if warn is None else warn,
            fail=known.fail if fail is None else fail,
            source=f"{_OWN}; {known.source}",
        )


class AutopilotSettings(SettingsModel):
    """IBM's Autopilot: periodic checks of each GPU node. AppWrapper and the slack queue use the verdict."""

    enabled: bool = False
    """Install Autopilot."""
    checks: tuple[Annotated[str, choice("check of Autopilot", autopilot.CHECKS)], ...] = autopilot.DEFAULT_CHECKS
    """Checks of each round: PCIe bandwidth (`pciebw`), remapped memory rows (`remapped`), NVIDIA's diagnostics
    (`dcgm`), reachability of other nodes (`ping`), throttling (`gpupower`), memory bandwidth (`gpumem`) and volumes
    (`pvc`). `gpumem` also computes on GPUs that a job uses.
    """
    interval_hours: Annotated[int, Field(ge=1, le=7 * 24)] = 1
    """Hours between rounds. Each round overwrites the verdict of the previous one, also EVICT."""
    deep_check_hours: Annotated[int, Field(ge=0, le=7 * 24)] = 4
    """Hours between deep checks: 15 minutes of NVIDIA's longest diagnostics on a node with eight idle GPUs. 0 switches
    them off.
    """
    pvc_storage_class: ClassName | None = None
    """StorageClass for the check `pvc`, which creates a volume of 100Mi for each node in each round. It must support
    ReadWriteMany and immediate binding.
    """
    pcie_gbs: Annotated[int, Field(ge=1, le=64)] = 4
    """PCIe bandwidth of a GPU in GB/s. Below it `pciebw` fails."""
    runtime_class: RuntimeClassName | None = None
    """RuntimeClass of Autopilot's pods. Default: `nvidia` with the platform's GPU operator, otherwise the nodes'
    default runtime.
    """
    guarded_gpus: bool | None = None
    """Set to true if the nodes show GPUs only to privileged containers and to those that request GPUs. Autopilot's pods
    then get the capability SYS_ADMIN, to see all GPUs. Default: true with the platform's GPU operator.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.checks:
            yield ConfigError(
                (*path, "checks"),
                "without checks, every node would be marked as healthy",
                f"set {key((*path, 'enabled'))} to false, or remove the key; the default is "
                f"{listed(autopilot.DEFAULT_CHECKS)}",
                expected=f"some of {', '.join(autopilot.CHECKS)}",
            )
        for index, name in enumerate(self.checks):
            if name in self.checks[:index]:
                yield ConfigError(
                    (*path, "checks", index), "duplicate check: it would run twice in each round", "remove it"
                )
        wanted = autopilot.PVC in self.checks
        if wanted and self.pvc_storage_class is None:
            yield ConfigError(
                (*path, "pvcStorageClass"),
                "the check pvc creates volumes and needs a StorageClass",
                f"set it to a class that `kubectl get storageclass` shows, or remove pvc from {key((*path, 'checks'))}",
                expected="a class with ReadWriteMany and immediate binding, such as one of an NFS server",
            )
        if self.pvc_storage_class is not None and not wanted:
            yield ConfigError(
                (*path, "pvcStorageClass"),
                "only the check pvc uses this class, and it is not selected",
                f"add pvc to {key((*path, 'checks'))}, or remove the key",
            )


class HealthSettings(SettingsModel):
    """Health checks of the GPU nodes. All are off by default."""

    nccl_gate: NcclGateSettings = NcclGateSettings()
    autopilot: AutopilotSettings = AutopilotSettings()

    def checks(self) -> Mapping[str, CheckSettings]:
        return {"ncclGate": self.nccl_gate}
