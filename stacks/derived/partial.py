"""Values derived from a configuration's valid sections. Each is computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from components import catalogue, names
from components.compatibility import SCHEDULER_PLUGINS_KUBERNETES, goes_with
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.queueing.running_kueue import RunningKueue
from components.tenancy.quota import Quota
from stacks.config.cluster_facts import comes_with_admission_policies
from stacks.config.errors import Path, key
from stacks.config.sections import Sections
from stacks.derived.borrowing import borrowing_limits
from stacks.derived.quotas import slack_quota, team_quotas
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings, QuotaSettings, TeamSettings
from stacks.targets.spec import TargetSpec


@dataclass
class PartialSettings(Sections):
    """The valid sections of a configuration. Checks skip missing sections.

    target: None if it is unknown.
    which: position of the node pool that `pool`, quotas and limits are about; see `of_pool`.

    Set all fields before you read a derived value, which is cached.
    """

    target: TargetSpec[Any] | None = None
    which: int = 0

    @cached_property
    def reserved(self) -> Quota:
        """What each GPU node is to keep for its DaemonSets, also where that is more than it has."""
        queueing = self.section(QueueingSettings)
        default = self.target.reserved if self.target is not None else {}
        return {**default, **(queueing.node_reserve.amounts() if queueing is not None else {})}

    def of_pool(self, which: int) -> PartialSettings:
        """Return the same settings with the quotas, shares and limits that teams have of another pool than the first.

        which: its position, 0 for the first.
        """
        if which == 0:
            return self
        name = self.pools[which].name
        teams = [team.of_pool(name) if team is not None else None for team in self.teams]
        return replace(self, teams=teams, which=which)

    @property
    def every_pool(self) -> list[PartialSettings]:
        """The settings as each pool has them."""
        return [self.of_pool(which) for which in range(len(self.pools))]

    @cached_property
    def pools(self) -> Sequence[NodePool]:
        """The node pools, as the target describes them."""
        return self.target.pools(self) if self.target is not None else ()

    @property
    def count_key(self) -> Path:
        """The key of the number of the pool's nodes; empty without a target."""
        if self.target is None:
            return ()
        return self.target.count_key if self.which == 0 else (*self.target.pools_key, self.which - 1, "count")

    @property
    def said(self) -> str:
        """The pool behind an amount in a message, where there are several."""
        return f" of pool {self.pools[self.which].name}" if len(self.pools) > 1 else ""

    @property
    def slack_key(self) -> Path:
        """The key of the slack queue's quota of the pool."""
        if self.target is None or self.which == 0:
            return ("queueing", "slack")
        return (*self.target.pools_key, self.which - 1, "slack")

    def team_key(self, index: int) -> Path:
        """Return the key under which a team's quota, share and limits of the pool are."""
        team = self.teams[index]
        if self.which == 0 or team is None:
            return ("teams", index)
        listed = [pool.name for pool in team.pools]
        name = self.pools[self.which].name
        return ("teams", index, "pools", listed.index(name)) if name in listed else ("teams", index)

    @cached_property
    def pool(self) -> NodePool | None:
        """The pool's nodes, what they offer, and what they keep of it."""
        if self.which >= len(self.pools):
            return None
        pool = self.pools[self.which]
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
        return self.target.fabric(self, self.which) if self.target is not None and self.pool is not None else None

    @cached_property
    def kubernetes_version(self) -> str | None:
        return self.target.kubernetes_version(self) if self.target is not None else None

    @property
    def version_key(self) -> str:
        """The key of the cluster's version, or a description without such a key."""
        path = self.target.version_path if self.target is not None else ()
        return key(path) if path else "the cluster's Kubernetes version"

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
    def running_kueue(self) -> RunningKueue | None:
        """The Kueue that the stack uses and does not install from upstream's manifest."""
        return self.target.running_kueue(self) if self.target is not None else None

    @cached_property
    def kueue_version(self) -> str | None:
        """The version of the Kueue that runs, None if the settings could not be read."""
        if self.running_kueue is not None:
            return self.running_kueue.version
        queueing = self.section(QueueingSettings)
        return queueing.kueue_version if queueing is not None else None

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
        if self.section(QueueingSettings) is None or self.pool is None:
            return None
        return slack_quota(self.slack_given, self.pool)

    @property
    def slack_given(self) -> QuotaSettings | None:
        """The slack queue's quota that the settings name."""
        if self.which and self.target is not None:
            return self.target.further(self)[self.which - 1].slack
        queueing = self.section(QueueingSettings)
        return queueing.slack if queueing is not None else None

    @cached_property
    def queues(self) -> Mapping[str, Quota]:
        """The quotas of the target's own queues, by section, which have none but of the first pool."""
        return self.target.queues(self) if self.target is not None and self.which == 0 else {}

    @cached_property
    def undivided(self) -> Quota | None:
        """What no share is a part of: the quotas of the slack queue and of the target's own queues, together."""
        if self.slack is None:
            return None
        own = [self.slack, *self.queues.values()]
        return {name: sum((quota[name] for quota in own), start=ZERO) for name in self.slack}

    @cached_property
    def quotas(self) -> Mapping[str, Quota]:
        """The teams' quotas that are known, by team: shares are unknown while the nodes or a team are."""
        if self.pool is None or self.undivided is None or None in self.teams:
            return {team.name: team.quota.amounts() for team in self.known_teams if team.quota is not None}
        return team_quotas(self.known_teams, self.undivided, self.pool)

    def lent(self, team: TeamSettings, resource: str) -> Quantity | None:
        """Return how much of a resource the queues other than a team's lend, or None if that is unknown."""
        if self.slack is None or None in self.teams:
            return None
        others = [other for other in self.known_teams if other is not team and other.name in self.quotas]
        lent = (other.lending_limit.amounts().get(resource, self.quotas[other.name][resource]) for other in others)
        return sum(lent, start=self.slack[resource])

    @cached_property
    def borrowing_limits(self) -> Mapping[str, Quota]:
        """What teams may borrow at most, by team: their own limits alone while somebody's quota is not known."""
        kueue = self.kueue_version
        if self.target is None or kueue is None or self.slack is None or None in self.teams:
            return {team.name: team.borrowing_limit.amounts() for team in self.known_teams}
        return borrowing_limits(self.known_teams, self.quotas, self.slack, kueue)
