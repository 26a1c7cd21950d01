"""A team: its namespace, its share of the cluster and its members."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.network import NAMESPACE_LABEL, Network, boundary
from components.kubernetes.rbac import binding
from components.layer import Layer
from components.tenancy import user_queues
from components.tenancy.bounds import APPWRAPPERS, Bounds, job_quotas, limit_range, quotas
from components.tenancy.quota import FlavorQuota, StopPolicy, cluster_queue

_LONGEST_NAME: Final = 253
_GROUP: Final = "group:"
"""Prefix of the names of groups' RoleBindings. A user's RoleBinding never has it."""
UNENFORCED: Final = "mlbatch/unenforced"
"""Annotation of a team's namespace that lists the promises that are not enforced there."""


class Subject(StrEnum):
    """Kinds of RBAC subjects that sign in."""

    USER = "User"
    GROUP = "Group"


@dataclass(frozen=True, kw_only=True)
class TeamArgs:
    """The arguments of a team.

    name: name of the team and its namespace. The name, the members and the quotas are plain values, because they
    determine which resources exist.
    users, groups: names in the cluster's identity provider.
    flavors: the team's quota of each flavor. The team may borrow idle quota of other teams.
    cohort: the queues that lend to each other.
    covered: resources that its queue has quotas for.
    unlimited: further resources that jobs may request without a limit.
    user_fair_sharing: each user has a LocalQueue. Pending jobs of the user with the least recent use go first.
    stop_policy: whether its queue starts jobs.
    open_to_all: its queue also takes jobs of other namespaces whose administrators direct them to it.
    gpu_resource: resource name under which nodes offer GPUs.
    kueue_api: API version of its queues.
    role: name of the ClusterRole for members.
    labels: more labels of the namespace, besides the label that marks it as a team's.
    bounds: bounds on what no queue counts.
    defined: kinds of jobs that the stack defines, which get quotas (`components.tenancy.bounds.SUBMITTED`).
    network: allowed connections of the team's pods. None allows all.
    unenforced: promises that are not enforced. An annotation of the namespace lists them.
    protect: the engine refuses to delete the namespace, because that could delete PVCs with members' data.
    """

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    flavors: Sequence[FlavorQuota]
    cohort: str
    covered: Sequence[str] = names.RESOURCES
    unlimited: Sequence[str] = ()
    user_fair_sharing: bool = False
    stop_policy: StopPolicy = StopPolicy.NONE
    open_to_all: bool = False
    gpu_resource: str = names.GPU
    kueue_api: str = names.KUEUE_API
    role: pulumi.Input[str]
    labels: Mapping[str, str] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    defined: Sequence[str] = (APPWRAPPERS,)
    network: Network | None = None
    unenforced: Sequence[str] = ()
    protect: bool = True


class Team(Layer):
    """Create a team's namespace, its queue and its members' permissions (MLBatch TEAM-SETUP.md).

    The namespace's label makes Kueue manage every job in it. Members are only names, which the cluster's identity
    provider resolves. The bounds and the NetworkPolicy exist before the LocalQueue. The namespace depends on the
    ClusterQueue, so that it is deleted first: Kueue keeps a queue while it has running jobs.
    """

    namespace: pulumi.Output[str]
    cluster_queue: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    """Depend on these to submit jobs of the team."""

    def __init__(self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:Team", name, None, opts)
        own_queues = [user_queues.queue_name(user) for user in args.users] if args.user_fair_sharing else []
        queue = Manifest(
            names.cluster_queue(name),
            cluster_queue(
                names.cluster_queue(args.name),
                flavors=args.flavors,
                cohort=args.cohort,
                namespaces={} if args.open_to_all else {"matchLabels": {NAMESPACE_LABEL: args.name}},
                covered=args.covered,
                gpu_resource=args.gpu_resource,
                usage_based=args.user_fair_sharing,
                stop_policy=args.stop_policy,
                unlimited=args.unlimited,
                api=args.kueue_api,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        namespace = Manifest(
            name,
            namespace_body(
                NamespaceArgs(
                    name=args.name,
                    labels={names.TEAM_LABEL: "true", **args.labels},
                    annotations={
                        **({UNENFORCED: ", ".join(args.unenforced)} if args.unenforced else {}),
                        **({names.USER_QUEUES: user_queues.annotation(args.users)} if own_queues else {}),
                    },
                )
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[queue], protect=args.protect),
        )
        self.namespace, self.cluster_queue = namespace.object_name, queue.object_name
        bounds = [
            *quotas(self.namespace, args.bounds),
            *job_quotas(self.namespace, args.defined, args.bounds),
            limit_range(self.namespace, args.bounds.disk),
        ]
        bounded = [
            Manifest(f"{name}-{bound['metadata']['name']}", bound, pulumi.ResourceOptions(parent=self))
            for bound in bounds
        ]
        policies: list[pulumi.Resource] = []
        if args.network is not None:
            child = pulumi.ResourceOptions(parent=self)
            policies.append(Manifest(f"{name}/NetworkPolicy", boundary(self.namespace, args.network), child))
        self.ready = [
            Manifest(
                f"{name}-{queue_name}",
                {
                    "apiVersion": args.kueue_api,
                    "kind": "LocalQueue",
                    "metadata": {"name": queue_name, "namespace": self.namespace},
                    "spec": {"clusterQueue": self.cluster_queue},
                },
                pulumi.ResourceOptions(
                    parent=self,
                    depends_on=[*bounded, *policies],
                    replace_on_changes=["spec.clusterQueue"],
                    delete_before_replace=True,
                ),
            )
            for queue_name in (names.LOCAL_QUEUE, *own_queues)
        ]
        for user in args.users:
            self._bind(name, args, Subject.USER, user, former=f"{name}-{binding_name(user)}")
        for group in args.groups:
            self._bind(name, args, Subject.GROUP, group)
        self.register_outputs({"namespace": self.namespace, "clusterQueue": self.cluster_queue})

    def _bind(self, name: str, args: TeamArgs, kind: Subject, member: str, former: str | None = None) -> None:
        """Bind a member to the role.

        former: the resource's name in older stacks, where users of two teams could have the same name.
        """
        Manifest(
            f"{name}/{kind.lower()}/{binding_name(member, kind)}",
            role_binding(member, kind, namespace=self.namespace, role=args.role),
            pulumi.ResourceOptions(
                parent=self,
                replace_on_changes=["roleRef"],
                delete_before_replace=True,
                aliases=[pulumi.Alias(name=former)] if former else None,
            ),
        )


def role_binding(
    member: str, kind: Subject = Subject.USER, *, namespace: pulumi.Input[str], role: pulumi.Input[str]
) -> Document:
    """Return the RoleBinding of a member in a team's namespace, named after the member."""
    subject = {"apiGroup": names.RBAC, "kind": str(kind), "name": member}
    return binding(binding_name(member, kind), role, [subject], namespace, of_cluster=True)


def binding_name(member: str, kind: Subject = Subject.USER) -> str:
    """Return the name of a member's RoleBinding. It is the member's name if Kubernetes allows it.

    Names of RBAC objects may be any segment of a URL path: without `/` and `%`, not `.` or `..` (Kubernetes
    `ValidatePathSegmentName`), and at most 253 characters. So alice@example.org keeps its name. In other names, `-`
    replaces forbidden characters, and a digest keeps two members apart. A group's name begins with `group:`, so that it
    differs from every user's.
    """
    prefix = _GROUP if kind is Subject.GROUP else ""
    name = re.sub(r"[^A-Za-z0-9@._:+-]", "-", member)
    if not prefix and name.startswith(_GROUP):
        name = name.replace(":", "-", 1)
    longest = _LONGEST_NAME - len(prefix)
    if name == member and len(name) <= longest and name.strip("."):
        return prefix + name
    digest = hashlib.sha256(member.encode()).hexdigest()[:8]
    return f"{prefix}{name[: longest - len(digest) - 1]}-{digest}"
