"""What a configuration says as far as it could be read, and what follows from that: each thing worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from components import catalogue, names
from components.compatibility import SCHEDULER_PLUGINS_KUBERNETES, goes_with
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from stacks.borrowing import borrowing_limits
from stacks.cluster_facts import ClusterFacts, comes_with_admission_policies
from stacks.errors import MISSING, Path
from stacks.quotas import slack_quota, team_quotas
from stacks.settings.model import SettingsModel
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings, TeamSettings
from stacks.target import TargetSpec

M = TypeVar("M", bound=SettingsModel)


@dataclass
class PartialSettings:
    """The sections of a configuration that could be read. Checks work on it, and say nothing about what is missing.

    raw: the configuration as it was written, by key. target: None for one that is not known. sections: by key, without
        the teams.
    teams: None stands for one that could not be read; team_names: the name of each as it was written.
    secrets: the keys of the secrets that are set.
    facts: what the cluster says of itself, None where nobody asked or it did not answer.
    site: what the cloud says in which the target makes its own, in the target's words; None likewise.

    Set everything before the first look at what is derived, which is kept.
    """

    raw: Mapping[str, object] = field(default_factory=dict)
    target: TargetSpec[Any] | None = None
    sections: dict[str, SettingsModel] = field(default_factory=dict)
    teams: list[TeamSettings | None] = field(default_factory=list)
    team_names: list[object] = field(default_factory=list)
    secrets: frozenset[str] = frozenset()
    facts: ClusterFacts | None = None
    site: object = None

    def section(self, model: type[M]) -> M | None:
        """Return the section of a model, None when it could not be read or the target has none."""
        return next((section for section in self.sections.values() if isinstance(section, model)), None)

    @cached_property
    def reserved(self) -> Quota:
        """What each GPU node is to keep for its DaemonSets, also where that is more than it has."""
        queueing = self.section(QueueingSettings)
        default = self.target.reserved if self.target is not None else {}
        return {**default, **(queueing.node_reserve.amounts() if queueing is not None else {})}

    @cached_property
    def pool(self) -> NodePool | None:
        """The GPU nodes, what they offer, and what they keep of it."""
        pool = self.target.pool(self) if self.target is not None else None
        if pool is None:
            return None
        has = self.shared(pool.shape.resources)
        kept = {resource: amount for resource, amount in self.reserved.items() if amount < has[resource]}
        return replace(pool, shape=replace(pool.shape, resources=has), reserved=kept)

    @cached_property
    def gpu_resource(self) -> str:
        """As which nodes offer GPUs to the platform's pods."""
        nvshare = self.section(NvshareSettings)
        return names.SHARED_GPU if nvshare is not None and nvshare.enabled else names.GPU

    def shared(self, has: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
        """Return what a node has as pods may ask for it: several shares of each GPU, where it is shared."""
        nvshare = self.section(NvshareSettings)
        if nvshare is None or not nvshare.enabled:
            return has
        return {**has, names.GPU: has[names.GPU] * nvshare.virtual_gpus}

    @cached_property
    def fabric(self) -> Fabric | None:
        """What a pod that takes a whole GPU node asks of the network."""
        return self.target.fabric(self, self.pool) if self.target is not None and self.pool is not None else None

    @cached_property
    def kubernetes_version(self) -> str | None:
        """The cluster's version."""
        return self.target.kubernetes_version(self) if self.target is not None else None

    @cached_property
    def scheduler_version(self) -> str:
        """The version of scheduler-plugins: the chosen one, or the newest that goes with the cluster's Kubernetes."""
        scheduling = self.section(SchedulingSettings)
        if scheduling is not None and scheduling.scheduler_version is not None:
            return scheduling.scheduler_version
        newest, kubernetes = catalogue.versions(catalogue.SCHEDULER_PLUGINS)[0], self.kubernetes_version
        if kubernetes is None:
            return newest
        suited = (known for known, minors in SCHEDULER_PLUGINS_KUBERNETES.items() if goes_with(minors, kubernetes))
        return next(suited, newest)

    @cached_property
    def has_admission_policies(self) -> bool | None:
        """Whether the cluster judges requests by ValidatingAdmissionPolicies: as it says, or by its version."""
        if self.facts is not None:
            return self.facts.has_admission_policies
        if self.target is None or self.target.has_kubeconfig or self.kubernetes_version is None:
            return None
        return comes_with_admission_policies(self.kubernetes_version)

    @cached_property
    def slack(self) -> Quota | None:
        """The slack queue's quota."""
        queueing = self.section(QueueingSettings)
        return slack_quota(queueing, self.pool) if queueing is not None and self.pool is not None else None

    @cached_property
    def queues(self) -> Mapping[str, Quota]:
        """The quotas of the target's own queues, by section."""
        return self.target.queues(self) if self.target is not None else {}

    @cached_property
    def undivided(self) -> Quota | None:
        """What no share is a part of: the quotas of the slack queue and of the target's own queues, together."""
        if self.slack is None:
            return None
        own = [self.slack, *self.queues.values()]
        return {name: sum((quota[name] for quota in own), start=ZERO) for name in self.slack}

    def written(self, path: Path) -> object:
        """Return what stands at a path of the configuration, MISSING where nothing does."""
        value: Any = self.raw
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return MISSING
        return value

    @property
    def known_teams(self) -> list[TeamSettings]:
        """The teams that could be read."""
        return [team for team in self.teams if team is not None]

    @cached_property
    def quotas(self) -> Mapping[str, Quota]:
        """The teams' quotas that are known, by team: shares are unknown while the nodes or a team are."""
        if self.pool is None or self.undivided is None or None in self.teams:
            return {team.name: team.quota.amounts() for team in self.known_teams if team.quota is not None}
        return team_quotas(self.known_teams, self.undivided, self.pool)

    @cached_property
    def borrowing_limits(self) -> Mapping[str, Quota]:
        """What teams may borrow at most, by team: their own limits alone while somebody's quota is not known."""
        kueue = self.target.kueue_version(self) if self.target is not None else None
        if kueue is None or self.slack is None or None in self.teams:
            return {team.name: team.borrowing_limit.amounts() for team in self.known_teams}
        return borrowing_limits(self.known_teams, self.quotas, self.slack, kueue)
