"""A team: a namespace, its share of the cluster, and the people who may use it."""

from __future__ import annotations

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
from components.layer import Layer
from components.tenancy import user_queues
from components.tenancy.bounds import APPWRAPPERS, Bounds, job_quotas, limit_range, quotas
from components.tenancy.quota import FlavorQuota, cluster_queue

_LONGEST_NAME: Final = 253
_GROUP: Final = "group:"
"""Stands before a group's binding, and before no user's."""
UNENFORCED: Final = "mlbatch/unenforced"
"""The annotation of a team's namespace with the promises that nothing holds there."""


class Subject(StrEnum):
    """Whom Kubernetes gives rights to, of those who sign in."""

    USER = "User"
    GROUP = "Group"


@dataclass(frozen=True, kw_only=True)
class TeamArgs:
    """What a team gets.

    name: of the team and its namespace; plain, as are members and quota, because they decide what exists.
    users, groups: names as the cluster's identity provider gives them.
    flavors: the team's own quota of each; it may use more while others leave theirs idle.
    cohort: the queues that lend to each other. covered: the resources that its queue has quotas of.
    user_fair_sharing: each of its users has a LocalQueue, and of jobs that wait, those of the user who has used least
        lately go first.
    open_to_all: its queue takes jobs of any namespace whose administrator leads them there, and not of its own alone.
    gpu_resource: as which nodes offer GPUs. kueue_api: the API version of its queues.
    role: name of the ClusterRole for members.
    labels: of the namespace, beside that which makes it a team's.
    bounds: of what no queue counts.
    defined: kinds of jobs that the stack defines (`components.tenancy.bounds.SUBMITTED`), so that they are counted.
    network: whom the team's pods speak with; None for whomever they like.
    unenforced: promises to the team that nothing holds, of which its namespace tells whoever looks at it.
    protect: the engine deletes no namespace, with whose claims the members' data may go.
    """

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    flavors: Sequence[FlavorQuota]
    cohort: str
    covered: Sequence[str] = names.RESOURCES
    user_fair_sharing: bool = False
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
    """Give a team its namespace, its queue and its members' permissions (MLBatch TEAM-SETUP.md).

    The namespace's label makes Kueue manage every job in it. Members are names only: who they are is the cluster's
    matter. Its bounds and its NetworkPolicy stand before its LocalQueue. The namespace comes after the ClusterQueue so
    that it goes before it: Kueue holds a queue back while jobs run in it.
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
                        **({user_queues.ANNOTATION: user_queues.annotation(args.users)} if own_queues else {}),
                    },
                )
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[queue], protect=args.protect),
        )
        self.namespace, self.cluster_queue = namespace.object_name, queue.object_name
        bounds = [
            *quotas(self.namespace, args.bounds),
            *job_quotas(self.namespace, args.defined),
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
        """Let a member in. former: as which older stacks have it, whose names two teams' users could share."""
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
    """Return the binding that lets a member act in a team's namespace, named after the member."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": binding_name(member, kind), "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": str(kind), "name": member}],
    }


def binding_name(member: str, kind: Subject = Subject.USER) -> str:
    """Return the name of a member's RoleBinding: the member's own where an object can have it.

    RBAC objects take any name that can stand in a URL's path: no `/`, no `%`, neither `.` nor `..` (Kubernetes
    `ValidatePathSegmentName`), at most 253 characters; so alice@example.org keeps its name. Others get theirs with `-`
    for what is not allowed, and a digest that keeps two members apart. A group's begins with `group:`, so that it is no
    user's.
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
