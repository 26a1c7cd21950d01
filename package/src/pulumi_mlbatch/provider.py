"""The Pulumi plugin `mlbatch`: components for programs in other languages (docs/package.md).

The SDK derives the plugin's schema from types, and passes dictionaries as arguments. It supports TypedDict, str, bool,
list and dict. It rejects tuples, TypeAlias and quantities (pulumi 3.272, `provider/experimental/analyzer.py`). These
components therefore have fewer arguments. Their children are the package's own components.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import NotRequired, TypedDict

import pulumi
from pulumi.provider.experimental import component_provider_host

import pulumi_mlbatch as mlbatch

_COHORT = "default-cohort"


class QueueingArgs(TypedDict):
    """The arguments of Queueing."""

    artifacts: NotRequired[str]
    """Folder or https URL with upstream's manifests. By default they are read from upstream."""
    unverified: NotRequired[bool]
    """The manifests may differ from upstream's."""
    nodes: NotRequired[dict[str, str]]
    """Labels of the GPU nodes. Jobs run there, and tolerate the taint nvidia.com/gpu."""


class Queueing(pulumi.ComponentResource):
    """Kueue and AppWrapper in the namespace mlbatch-system, the flavor of the GPU nodes, and the role of members."""

    flavor: pulumi.Output[str]
    role: pulumi.Output[str]

    def __init__(self, name: str, args: QueueingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:index:Queueing", name, None, opts)
        mirror = mlbatch.Mirror(artifacts=args.get("artifacts"), verify=not args.get("unverified", False))

        def after(*needs: pulumi.Resource) -> pulumi.ResourceOptions:
            return pulumi.ResourceOptions(parent=self, depends_on=mlbatch.needed(needs))

        system = mlbatch.Namespace("system", mlbatch.NamespaceArgs(name="mlbatch-system", critical=True), after())
        wrappers = mlbatch.AppWrappers(
            "appwrapper", mlbatch.AppWrappersArgs(release=mlbatch.release("appwrapper", mirror=mirror)), after(system)
        )
        kueue = mlbatch.Kueue(
            "kueue",
            mlbatch.KueueArgs(release=mlbatch.release("kueue", mirror=mirror)),
            after(system, *wrappers.definitions),
        )
        gpus = mlbatch.FlavorArgs(nodes=args.get("nodes", {}), tolerations=[mlbatch.GPU_TOLERATION])
        self.flavor = mlbatch.Flavor("flavor", gpus, after(kueue, wrappers)).name
        self.role = mlbatch.EditorRole("editor", mlbatch.EditorRoleArgs(), after()).name
        self.register_outputs({"flavor": self.flavor, "role": self.role})


class SlackQueueArgs(TypedDict):
    """The arguments of SlackQueue."""

    quota: dict[str, str]
    """Amount of each resource, such as cpu, memory and nvidia.com/gpu."""
    flavor: pulumi.Input[str]
    """The flavor that has this quota, from Queueing."""
    cohort: NotRequired[str]
    """The queues that lend to each other. Default: default-cohort."""


class SlackQueue(pulumi.ComponentResource):
    """A queue of no team, whose quota all teams borrow."""

    queue: pulumi.Output[str]

    def __init__(self, name: str, args: SlackQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:index:SlackQueue", name, None, opts)
        own = mlbatch.SlackQueueArgs(
            flavors=_quota(args["flavor"], args["quota"]),
            cohort=args.get("cohort", _COHORT),
            covered=_covered(args["quota"]),
        )
        self.queue = mlbatch.SlackQueue(name, own, pulumi.ResourceOptions(parent=self)).name
        self.register_outputs({"queue": self.queue})


class TeamArgs(TypedDict):
    """The arguments of Team."""

    team: str
    """Name of the team and its namespace."""
    users: NotRequired[list[str]]
    """Names in the cluster's identity provider."""
    groups: NotRequired[list[str]]
    """Names in the cluster's identity provider."""
    quota: dict[str, str]
    """Amount of each resource, such as cpu, memory and nvidia.com/gpu. Jobs cannot request other resources."""
    flavor: pulumi.Input[str]
    """The flavor that has this quota, from Queueing."""
    role: pulumi.Input[str]
    """ClusterRole of members, from Queueing."""
    cohort: NotRequired[str]
    """The queues that lend to each other. Default: default-cohort."""
    unprotected: NotRequired[bool]
    """The namespace can be deleted, with the members' data."""


class Team(pulumi.ComponentResource):
    """A team's namespace, its queue and its members' permissions."""

    namespace: pulumi.Output[str]
    cluster_queue: pulumi.Output[str]

    def __init__(self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:index:Team", name, None, opts)
        own = mlbatch.TeamArgs(
            name=args["team"],
            users=tuple(args.get("users", ())),
            groups=tuple(args.get("groups", ())),
            flavors=_quota(args["flavor"], args["quota"]),
            cohort=args.get("cohort", _COHORT),
            covered=_covered(args["quota"]),
            role=args["role"],
            protect=not args.get("unprotected", False),
        )
        team = mlbatch.Team(name, own, pulumi.ResourceOptions(parent=self))
        self.namespace, self.cluster_queue = team.namespace, team.cluster_queue
        self.register_outputs({"namespace": self.namespace, "clusterQueue": self.cluster_queue})


def _covered(quota: Mapping[str, str]) -> tuple[str, ...]:
    """Return the resources in a fixed order. The engine passes maps in a random one, and each order is a change."""
    return tuple(sorted(quota))


def _quota(flavor: pulumi.Input[str], quota: Mapping[str, str]) -> list[mlbatch.FlavorQuota]:
    return [mlbatch.FlavorQuota(flavor=flavor, quota=mlbatch.amounts(quota))]


NAME = "mlbatch"
COMPONENTS: list[type[pulumi.ComponentResource]] = [Queueing, SlackQueue, Team]


def main() -> None:
    """Serve the components to the engine that started this process."""
    component_provider_host(COMPONENTS, NAME, version=version("pulumi-mlbatch"))
