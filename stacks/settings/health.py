"""Checks of the GPU nodes, run when their trigger changes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from components import catalogue
from components.health.baselines import Scope
from stacks.settings.cluster import MOST_NODES
from stacks.settings.section import Section
from stacks.settings.workloads import Tag

MOST_GBS: Final = 10000
_CHECKS_TAG: Final = catalogue.NODE_HEALTH_CHECKS.reference.rpartition(":")[2]


class Mode(StrEnum):
    """What becomes of a verdict."""

    CHECK = "check"
    GATE = "gate"


class CheckSettings(Section):
    """What all checks have in common.

    trigger: any text; another one runs the check anew. nodes: how many to check; default all of the pool. A node that
    is in use is waited for until the deadline.
    mode: `check` prints the verdict; `gate` also labels the node with it, and taints it when it has failed. effect: of
    that taint; NoExecute ends the pods that are there. report_to_queues: tell AppWrapper and the slack queue as well.
    """

    enabled: bool = False
    trigger: Annotated[str, Field(min_length=1, max_length=63)] = "1"
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] | None = None
    mode: Mode = Mode.CHECK
    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    report_to_queues: bool = True
    deadline_seconds: Annotated[int, Field(ge=300, le=24 * 3600)] = 3600


class NodeCheckSettings(CheckSettings):
    """Azure's node health checks.

    image_tag: of mcr.microsoft.com/aznhc/aznhc-nv. kernel_log: read the host's syslog for GPU and link errors.
    """

    image_tag: Tag = _CHECKS_TAG
    kernel_log: bool = True


class NcclGateSettings(CheckSettings):
    """NCCL's all-reduce against a floor.

    scope: `node` tests each node by itself; `fabric` all of them together, with the image of mlbatch:workloads.nccl.
    warn_gbs, fail_gbs: bus bandwidth in GB/s below which the state is warn or fail; default the machine type's own.
    """

    scope: Scope = Scope.NODE
    warn_gbs: Annotated[int, Field(ge=1, le=MOST_GBS)] | None = None
    fail_gbs: Annotated[int, Field(ge=1, le=MOST_GBS)] | None = None


class HealthSettings(Section):
    """The checks; none unless asked for."""

    node_check: NodeCheckSettings = NodeCheckSettings()
    nccl_gate: NcclGateSettings = NcclGateSettings()
