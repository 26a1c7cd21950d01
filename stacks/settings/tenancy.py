"""Queues, and the teams that share the cluster through them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from components import catalogue, names
from components.kubernetes.quantity import ZERO, Quantity
from stacks.settings.section import Pieces, Section, choice

_KUEUE = catalogue.versions(catalogue.KUEUE)
_APPWRAPPER = catalogue.versions(catalogue.APPWRAPPER)


class QuotaSettings(Section):
    """Amounts of each resource. Every queue covers all of them, so a resource left out where it may be has 0 of it.

    pods: MLBatch's 100.
    """

    cpu: Quantity = Field(alias=names.CPU)
    memory: Quantity = Field(alias=names.MEMORY)
    gpu: Pieces = Field(alias=names.GPU)
    rdma: Pieces = Field(alias=names.RDMA, default=ZERO)
    infiniband: Pieces = Field(alias=names.INFINIBAND, default=ZERO)
    pods: Pieces = Field(alias=names.PODS, default=Quantity.parse(100))

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the quota by resource name."""
        amounts = (self.cpu, self.memory, self.gpu, self.rdma, self.infiniband, self.pods)
        return dict(zip(names.RESOURCES, amounts, strict=True))


class LimitSettings(Section):
    """Most of each resource; what is left out has no limit."""

    cpu: Quantity | None = Field(alias=names.CPU, default=None)
    memory: Quantity | None = Field(alias=names.MEMORY, default=None)
    gpu: Pieces | None = Field(alias=names.GPU, default=None)
    rdma: Pieces | None = Field(alias=names.RDMA, default=None)
    infiniband: Pieces | None = Field(alias=names.INFINIBAND, default=None)
    pods: Pieces | None = Field(alias=names.PODS, default=None)

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the limits by resource name."""
        limits = (self.cpu, self.memory, self.gpu, self.rdma, self.infiniband, self.pods)
        named = zip(names.RESOURCES, limits, strict=True)
        return {resource: limit for resource, limit in named if limit is not None}


class QueueingSettings(Section):
    """The queues that lend to each other, and the operators behind them.

    enabled: without them there are no teams, and jobs are run by whoever comes first.
    slack: quota of the slack queue; default one node's worth when there are several nodes, nothing otherwise.
    """

    enabled: bool = True
    cohort: str = "default-cohort"
    slack: QuotaSettings | None = None
    kueue_version: Annotated[str, choice("Kueue version", _KUEUE)] = _KUEUE[0]
    appwrapper_version: Annotated[str, choice("AppWrapper version", _APPWRAPPER)] = _APPWRAPPER[0]


class TeamSettings(Section):
    """A team: its name is that of its namespace, its users are names as the cluster knows them.

    Either quota, its own amounts; or share, its parts of what the slack queue and the teams with quotas leave of the
    GPU nodes, as against the shares of the other teams: such a team's quota follows the number of nodes.
    """

    name: str
    users: tuple[str, ...]
    quota: QuotaSettings | None = None
    share: Annotated[int, Field(ge=1, le=1000)] | None = None
    borrowing_limit: LimitSettings = LimitSettings()
    lending_limit: LimitSettings = LimitSettings()
