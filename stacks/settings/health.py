"""Checks of the GPU nodes, run when their trigger changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from components.health import autopilot
from components.health.thresholds import Scope, Threshold
from components.kubernetes.node_pool import NodePool
from stacks.errors import ConfigError, Path, key
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
    """What all checks have in common. A node that is in use is waited for until the deadline."""

    enabled: bool = False
    """Have the check."""
    trigger: Annotated[str, Field(min_length=1, max_length=63)] = "1"
    """Any text; another one runs the check anew."""
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] | None = None
    """How many nodes to check; default all of the pool."""
    mode: Mode = Mode.CHECK
    """`check` prints the verdict; `gate` also labels the node with it, and taints it when it has failed."""
    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """Effect of the taint on a node that has failed; NoExecute ends the pods that are there."""
    report_to_queues: bool = True
    """Tell AppWrapper and the slack queue as well."""
    deadline_seconds: Annotated[int, Field(ge=300, le=24 * 3600)] = 3600
    """How many seconds a check may take, the wait for a node included."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the taint's effect to checks that taint."""
        if self.mode is Mode.CHECK and self.effect != "NoSchedule":
            yield ConfigError(
                path=(*path, "effect"),
                value=self.effect,
                message="a check without a gate taints no node",
                expected=f"an effect together with {key((*path, 'mode'))}: gate",
                hint=f"set {key((*path, 'mode'))} to gate, or remove the effect",
            )


class NcclGateSettings(CheckSettings):
    """NCCL's all-reduce against a threshold."""

    scope: Scope = Scope.NODE
    """`node` tests each node by itself; `fabric` all of them together. Both run the image of mlbatch:workloads.nccl
    where the target has no other for a single node.
    """
    warn_gbs: Annotated[int, Field(ge=1, le=MOST_GBS)] | None = None
    """Bus bandwidth in GB/s below which the state is warn; default the machine type's own."""
    fail_gbs: Annotated[int, Field(ge=1, le=MOST_GBS)] | None = None
    """Bus bandwidth in GB/s below which the state is fail; default the machine type's own."""

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
    """IBM's Autopilot: periodic checks on each GPU node, whose verdict AppWrapper and the slack queue go by."""

    enabled: bool = False
    """Have it."""
    checks: tuple[Annotated[str, choice("check of Autopilot", autopilot.CHECKS)], ...] = autopilot.DEFAULT_CHECKS
    """What each round checks: bandwidth to the GPUs (`pciebw`), replaced memory rows (`remapped`), NVIDIA's diagnostics
    (`dcgm`), the way to the other nodes (`ping`), throttling (`gpupower`), memory bandwidth (`gpumem`, which computes
    on the GPUs whether a job has them or not), and volumes (`pvc`).
    """
    interval_hours: Annotated[int, Field(ge=1, le=7 * 24)] = 1
    """Hours between two rounds. A mark of an earlier one, EVICT too, lasts until the next."""
    deep_check_hours: Annotated[int, Field(ge=0, le=7 * 24)] = 4
    """Hours between two deep checks: a quarter of an hour of NVIDIA's longest diagnostics on a node whose eight GPUs
    are idle. 0 for none.
    """
    pvc_storage_class: ClassName | None = None
    """Class of the volumes that `pvc` makes, one of 100Mi on each node in each round. It has to offer ReadWriteMany,
    and to make a volume before a pod wants it.
    """
    pcie_gbs: Annotated[int, Field(ge=1, le=64)] = 4
    """Bandwidth of a GPU's PCIe link in GB/s, below which `pciebw` fails."""
    runtime_class: RuntimeClassName | None = None
    """RuntimeClass of its pods; default `nvidia` with the platform's GPU operator, else the nodes' own runtime."""
    guarded_gpus: bool | None = None
    """The nodes show GPUs only to containers that ask for them, and to privileged ones, as the platform's GPU operator
    has them do. Autopilot's pods then get the capability SYS_ADMIN, by which NVIDIA's runtime knows those. Default: as
    the platform installs that operator.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the checks to what can run."""
        if not self.checks:
            yield ConfigError(
                path=(*path, "checks"),
                value=[],
                message="without a check every node would be marked as healthy",
                expected=f"some of {', '.join(autopilot.CHECKS)}",
                hint=f"remove the key for the usual ones, or set {key((*path, 'enabled'))} to false",
            )
        for index, name in enumerate(self.checks):
            if name in self.checks[:index]:
                yield ConfigError(
                    path=(*path, "checks", index),
                    value=name,
                    message="this check is listed already, and would run twice in each round",
                    expected="each check once",
                    hint="remove it",
                )
        wanted = autopilot.PVC in self.checks
        if wanted and self.pvc_storage_class is None:
            yield ConfigError(
                path=(*path, "pvcStorageClass"),
                message="the check pvc makes volumes, and nothing says of which class",
                expected="a class with ReadWriteMany volumes that are made at once, such as one of an NFS server",
                hint=f"set it to a class that `kubectl get storageclass` shows, or take pvc out of "
                f"{key((*path, 'checks'))}",
            )
        if self.pvc_storage_class is not None and not wanted:
            yield ConfigError(
                path=(*path, "pvcStorageClass"),
                value=self.pvc_storage_class,
                message="only the check pvc makes volumes, and it is not asked for",
                expected=f"no class, or pvc among {key((*path, 'checks'))}",
                hint=f"add pvc to {key((*path, 'checks'))}, or remove the key",
            )


class HealthSettings(SettingsModel):
    """The checks; none unless asked for."""

    nccl_gate: NcclGateSettings = NcclGateSettings()
    autopilot: AutopilotSettings = AutopilotSettings()

    def checks(self) -> Mapping[str, CheckSettings]:
        """Return the checks by key."""
        return {"ncclGate": self.nccl_gate}
