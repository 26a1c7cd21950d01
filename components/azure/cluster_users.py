"""The right of team members to download a cluster's kubeconfig."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization

from components.azure import roles


@dataclass(frozen=True, kw_only=True)
class ClusterUsersArgs:
    """The arguments of the rights.

    cluster, cluster_id: name and resource ID.
    groups: object IDs of Entra groups.
    """

    cluster: str
    cluster_id: pulumi.Input[str]
    groups: Sequence[str]


class ClusterUsers(pulumi.ComponentResource):
    """Let the members of groups run `az aks get-credentials`.

    The role gives no right in the cluster. The bindings of their team do
    (learn.microsoft.com/azure/aks/control-kubeconfig-access).
    """

    def __init__(self, name: str, args: ClusterUsersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:ClusterUsers", name, None, opts)
        for group in args.groups:
            roles.assign(
                f"{args.cluster}-user-{group}",
                role=roles.CLUSTER_USER,
                scope=args.cluster_id,
                principal=group,
                kind=authorization.PrincipalType.GROUP,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
