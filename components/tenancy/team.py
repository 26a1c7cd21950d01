"""A team: a namespace, its share of the cluster, and the people who may use it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.layer import Layer
from components.tenancy.quota import Quota, cluster_queue

_LONGEST_NAME = 253


@dataclass(frozen=True, kw_only=True)
class TeamArgs:
    """What a team gets.

    name: of the team and its namespace; plain, as are users and quota, because they decide what exists.
    users: names as the cluster's identity provider gives them.
    quota: amount of each resource that is the team's own; it may use more while others leave theirs idle.
    borrowing_limit, lending_limit: most of a resource that the team may borrow, and that others may borrow from it;
        a resource left out has no limit.
    cohort: the queues that lend to each other.
    flavor, role: names of the ResourceFlavor and of the ClusterRole for users.
    """

    name: str
    users: tuple[str, ...]
    quota: Quota
    borrowing_limit: Quota = field(default_factory=dict)
    lending_limit: Quota = field(default_factory=dict)
    cohort: str
    flavor: pulumi.Input[str]
    role: pulumi.Input[str]


class Team(Layer):
    """Give a team its namespace, its queue and its members' permissions (MLBatch TEAM-SETUP.md).

    The namespace's label makes Kueue manage every job in it. Users are names only: who they are is the cluster's
    matter. Sets no ResourceQuota: MLBatch's QUOTA_MAINTENANCE.md forbids one for what a ClusterQueue counts. The
    namespace comes after the ClusterQueue so that it goes before it: Kueue holds a queue back while jobs run in it.
    """

    namespace: pulumi.Output[str]
    cluster_queue: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    """Depend on these to submit jobs of the team."""

    def __init__(self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:Team", name, None, opts)
        queue = Manifest(
            names.cluster_queue(name),
            cluster_queue(
                names.cluster_queue(args.name),
                quota=args.quota,
                cohort=args.cohort,
                flavor=args.flavor,
                borrowing_limit=args.borrowing_limit,
                lending_limit=args.lending_limit,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        namespace = Manifest(
            name,
            namespace_body(NamespaceArgs(name=args.name, labels={names.TEAM_LABEL: "true"})),
            pulumi.ResourceOptions(parent=self, depends_on=[queue]),
        )
        self.namespace, self.cluster_queue = namespace.object_name, queue.object_name
        local_queue = Manifest(
            f"{name}-{names.LOCAL_QUEUE}",
            {
                "apiVersion": names.KUEUE_API,
                "kind": "LocalQueue",
                "metadata": {"name": names.LOCAL_QUEUE, "namespace": self.namespace},
                "spec": {"clusterQueue": self.cluster_queue},
            },
            pulumi.ResourceOptions(parent=self, replace_on_changes=["spec.clusterQueue"], delete_before_replace=True),
        )
        self.ready = [local_queue]
        for user in args.users:
            Manifest(
                f"{name}-{binding_name(user)}",
                role_binding(user, namespace=self.namespace, role=args.role),
                pulumi.ResourceOptions(parent=self, replace_on_changes=["roleRef"], delete_before_replace=True),
            )
        self.register_outputs({"namespace": self.namespace, "clusterQueue": self.cluster_queue})


def role_binding(user: str, *, namespace: pulumi.Input[str], role: pulumi.Input[str]) -> Document:
    """Return the binding that lets a user act in a team's namespace, named after the user."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": binding_name(user), "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def binding_name(user: str) -> str:
    """Return the name of a user's RoleBinding: the user's own where an object can have it.

    RBAC objects take any name that can stand in a URL's path: no `/`, no `%`, neither `.` nor `..` (Kubernetes
    `ValidatePathSegmentName`), at most 253 characters; so alice@example.org keeps its name. Others get theirs with `-`
    for what is not allowed, and a digest that keeps two users apart.
    """
    name = re.sub(r"[^A-Za-z0-9@._:+-]", "-", user)
    if name == user and len(name) <= _LONGEST_NAME and name.strip("."):
        return name
    digest = hashlib.sha256(user.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}-{digest}"
