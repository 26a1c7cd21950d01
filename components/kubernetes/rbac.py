"""Service accounts and their rights (kubernetes.io, reference/access-authn-authz/rbac)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.objects import metadata

READ: Final = ("get", "list", "watch")
_API: Final = f"{names.RBAC}/v1"


@dataclass(frozen=True, kw_only=True)
class Account:
    """A service account.

    labels: of the account, and of its cluster-scoped rights.
    """

    name: str
    namespace: pulumi.Input[str]
    labels: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> Document:
        """Return the account."""
        own = metadata(self.name, self.namespace, labels=self.labels)
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own}

    def granted(
        self, rules: Sequence[Document], namespace: pulumi.Input[str] | None = None, *, name: str | None = None
    ) -> list[Document]:
        """Return a role and its binding to the account, as `role` does. name: of both, by default the account's."""
        name = name or self.name
        return [role(name, rules, namespace, labels=self.labels), self.bound(name, namespace)]

    def bound(
        self,
        role_name: str,
        namespace: pulumi.Input[str] | None = None,
        *,
        name: str | None = None,
        of_cluster: bool = False,
    ) -> Document:
        """Return the binding of a role to the account, as `binding` does."""
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        return binding(name or role_name, role_name, [subject], namespace, labels=self.labels, of_cluster=of_cluster)


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], only: Sequence[str] = ()) -> Document:
    """Return a rule of a role. only: names of the objects that it applies to. Empty for all."""
    bounds = {"resourceNames": list(only)} if only else {}
    return {"apiGroups": [group], "resources": list(resources), **bounds, "verbs": list(verbs)}


def role(
    name: str,
    rules: Sequence[Document],
    namespace: pulumi.Input[str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
) -> Document:
    """Return a Role, or a ClusterRole without a namespace."""
    kind = "ClusterRole" if namespace is None else "Role"
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": metadata(name, namespace, labels=labels),
        "rules": [dict(each) for each in rules],
    }


def binding(
    name: str,
    role_name: pulumi.Input[str],
    subjects: Sequence[Document],
    namespace: pulumi.Input[str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    of_cluster: bool = False,
) -> Document:
    """Return a RoleBinding, or a ClusterRoleBinding without a namespace.

    of_cluster: the role is a ClusterRole, although the binding has a namespace.
    """
    role_kind = "ClusterRole" if of_cluster or namespace is None else "Role"
    return {
        "apiVersion": _API,
        "kind": "ClusterRoleBinding" if namespace is None else "RoleBinding",
        "metadata": metadata(name, namespace, labels=labels),
        "roleRef": {"apiGroup": names.RBAC, "kind": role_kind, "name": role_name},
        "subjects": list(subjects),
    }
