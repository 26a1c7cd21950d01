"""Checks of the GPU nodes, run when their trigger changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from components.health.thresholds import Scope, Threshold
from components.kubernetes.node_pool import NodePool
from stacks.errors import ConfigError, Path, key
from stacks.settings import machines
from stacks.settings.limits import MOST_NODES
from stacks.settings.model import SettingsModel

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


class HealthSettings(SettingsModel):
    """The checks; none unless asked for."""

    nccl_gate: NcclGateSettings = NcclGateSettings()

    def checks(self) -> Mapping[str, CheckSettings]:
        """Return the checks by key."""
        return {"ncclGate": self.nccl_gate}
