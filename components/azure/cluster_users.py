"""The right of team members to download a cluster's kubeconfig."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization

from components.azure import roles


@dataclass(frozen=True, kw_only=True)
class ClusterUsersArgs:
    """The arguments of the rights.

    cluster: its name.
    group_id: resource ID of its resource group.
    groups: object IDs of Entra groups.
    """

    cluster: str
    group_id: pulumi.Input[str]
    groups: Sequence[str]


class ClusterUsers(pulumi.ComponentResource):
    """Let the members of groups run `az aks get-credentials`.

    The role gives no right in the cluster. The bindings of their team do
    (learn.microsoft.com/azure/aks/control-kubeconfig-access).
    """

    def __init__(self, name: str, args: ClusterUsersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:ClusterUsers", name, None, opts)
        # Not the cluster's own output, which a preview does not know after a change of the cluster.
        scope = pulumi.Output.concat(
            args.group_id, "/providers/Microsoft.ContainerService/managedClusters/", args.cluster
        )
        for group in args.groups:
            roles.assign(
                f"{args.cluster}-user-{group}",
                role=roles.CLUSTER_USER,
                scope=scope,
                principal=group,
                kind=authorization.PrincipalType.GROUP,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
