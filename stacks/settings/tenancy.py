"""Queues, and the teams that share the cluster through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from components import catalogue, names
from components.kubernetes.quantity import ZERO, Quantity
from stacks.errors import ConfigError, Path
from stacks.settings.model import SettingsModel, WholeQuantity, choice
from stacks.settings.names import SUBDOMAIN_LENGTH, is_subdomain

_KUEUE = catalogue.versions(catalogue.KUEUE)
_APPWRAPPER = catalogue.versions(catalogue.APPWRAPPER)


class QuotaSettings(SettingsModel):
    """Amounts of each resource. Every queue covers all of them, so a resource left out where it may be has 0 of it."""

    cpu: Quantity = Field(alias=names.CPU)
    """CPU cores."""
    memory: Quantity = Field(alias=names.MEMORY)
    """Bytes of memory."""
    gpu: WholeQuantity = Field(alias=names.GPU)
    """GPUs."""
    rdma: WholeQuantity = Field(alias=names.RDMA, default=ZERO)
    """RoCE devices."""
    infiniband: WholeQuantity = Field(alias=names.INFINIBAND, default=ZERO)
    """InfiniBand ports."""
    pods: WholeQuantity = Field(alias=names.PODS, default=Quantity.parse(100))
    """How many pods; the default is MLBatch's."""

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the quota by resource name."""
        amounts = (self.cpu, self.memory, self.gpu, self.rdma, self.infiniband, self.pods)
        return dict(zip(names.RESOURCES, amounts, strict=True))


class LimitSettings(SettingsModel):
    """Most of each resource; what is left out has no limit."""

    cpu: Quantity | None = Field(alias=names.CPU, default=None)
    """Most CPU cores."""
    memory: Quantity | None = Field(alias=names.MEMORY, default=None)
    """Most bytes of memory."""
    gpu: WholeQuantity | None = Field(alias=names.GPU, default=None)
    """Most GPUs."""
    rdma: WholeQuantity | None = Field(alias=names.RDMA, default=None)
    """Most RoCE devices."""
    infiniband: WholeQuantity | None = Field(alias=names.INFINIBAND, default=None)
    """Most InfiniBand ports."""
    pods: WholeQuantity | None = Field(alias=names.PODS, default=None)
    """Most pods."""

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the limits by resource name."""
        limits = (self.cpu, self.memory, self.gpu, self.rdma, self.infiniband, self.pods)
        named = zip(names.RESOURCES, limits, strict=True)
        return {resource: limit for resource, limit in named if limit is not None}


class QueueingSettings(SettingsModel):
    """The queues that lend to each other, and the operators behind them."""

    enabled: bool = True
    """Have queues. Without them there are no teams, and jobs are run by whoever comes first."""
    cohort: str = "default-cohort"
    """Name of the cohort, the queues that lend to each other."""
    slack: QuotaSettings | None = None
    """Quota of the slack queue; default one node's worth when there are several nodes, nothing otherwise."""
    kueue_version: Annotated[str, choice("Kueue version", _KUEUE)] = _KUEUE[0]
    """Version of Kueue."""
    appwrapper_version: Annotated[str, choice("AppWrapper version", _APPWRAPPER)] = _APPWRAPPER[0]
    """Version of AppWrapper."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the cohort's name to Kubernetes' rules."""
        if not is_subdomain(self.cohort):
            yield ConfigError(
                path=(*path, "cohort"),
                value=self.cohort,
                message="Kubernetes would reject this name",
                expected=f"at most {SUBDOMAIN_LENGTH} of a-z, 0-9, - and ., with a letter or digit first and last",
                hint="for example 'default-cohort'",
            )


class TenancySettings(SettingsModel):
    """The platform's own flavor, slack queue, role and teams on the queues."""

    enabled: bool = True
    """Have them; off where somebody else manages the queues: there are no teams then."""


class TeamSettings(SettingsModel):
    """A team: a namespace, a queue and its users. It has either a quota or a share."""

    name: str
    """Name of the team, which is its namespace's too."""
    users: tuple[str, ...]
    """Names of its users as the cluster knows them; may be empty."""
    quota: QuotaSettings | None = None
    """The team's own amounts."""
    share: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Its part of what the slack queue and the teams with quotas leave of the GPU nodes, as against the shares of the
    other teams: such a team's quota follows the number of nodes.
    """
    borrowing_limit: LimitSettings = LimitSettings()
    """Most that the team may borrow from others beyond its quota."""
    lending_limit: LimitSettings = LimitSettings()
    """Most of its quota that the team lends to others."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold users to Kubernetes' rules, and the team to one of quota and share; names are held apart together."""
        yield from self._users(path)
        if (self.quota is None) == (self.share is None):
            yield ConfigError(
                path=path,
                message="a team has either a quota of its own or a share of the nodes"
                + (", and this one has both" if self.quota else ", and this one has neither"),
                expected="one of the keys quota and share",
                hint="remove one of the two" if self.quota else "add share: 1, or a quota",
            )

    def _users(self, path: Path) -> Iterator[ConfigError]:
        for position, user in enumerate(self.users):
            where = (*path, "users", position)
            provided = "the name that the cluster's identity provider gives the user"
            if not user.strip():
                yield ConfigError(
                    path=where,
                    value=user,
                    message="a user's name is not empty",
                    expected=provided,
                    hint="write the name, or remove the entry",
                )
            elif user.startswith("system:"):
                yield ConfigError(
                    path=where,
                    value=user,
                    message="names that start with system: belong to Kubernetes",
                    expected=provided,
                    hint="write the user's own name",
                )
            elif user in self.users[:position]:
                yield ConfigError(
                    path=where,
                    value=user,
                    message="the team has this user already",
                    expected="each user once",
                    hint="remove the second entry",
                )
