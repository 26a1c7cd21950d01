"""Who may run pods under which SecurityContextConstraints.

An account uses a constraint that some role lets it `use` (openshift/api, security/v1). OpenShift brings a ClusterRole
for each constraint of its own (openshift/cluster-kube-apiserver-operator, bindata/bootkube/scc-manifests/*_cr-scc-*);
`oc adm policy add-scc-to-user` binds it, without a namespace in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

HOSTMOUNT_ANYUID: Final = "hostmount-anyuid"
"""Any user, and folders of the node and NFS exports as volumes."""
PRIVILEGED: Final = "privileged"
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class SccGrantArgs:
    """constraint: name of one that the cluster has. namespace, accounts: whose pods may run under it, and no others'.

    An account need not exist yet. It is to be one that a component makes: anybody who may create an account of this
    name there would have the grant.
    """

    constraint: str
    namespace: pulumi.Input[str]
    accounts: Sequence[str]


class SccGrant(Layer):
    """Let the pods of some accounts of a namespace run under a constraint of the cluster's own.

    By a RoleBinding in that namespace: an account that may create pods elsewhere has them refused there.
    """

    def __init__(self, name: str, args: SccGrantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openshift:SccGrant", name, None, opts)
        self.ready = [Manifest(f"{name}/RoleBinding", role_binding(args), pulumi.ResourceOptions(parent=self))]
        self.register_outputs({})


def role_of(constraint: str) -> str:
    """Return the ClusterRole by which accounts use a constraint that OpenShift brings."""
    return f"system:openshift:scc:{constraint}"


def role_binding(args: SccGrantArgs) -> Document:
    """Return the binding; its name is that of the role, as `oc adm policy add-scc-to-user -n` names it."""
    role = role_of(args.constraint)
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": args.namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [
            {"kind": "ServiceAccount", "name": account, "namespace": args.namespace} for account in args.accounts
        ],
    }
