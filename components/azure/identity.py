"""The managed identities of a cluster in Azure: the control plane's and the nodes'."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pulumi
from pulumi_azure_native import managedidentity

from components.azure import roles
from components.azure.scope import ResourceScope
from components.layer import Layer

ARRIVAL_SECONDS: Final = 120
"""A role of this age is most likely in effect. Azure promises ten minutes at most
(learn.microsoft.com/azure/role-based-access-control/troubleshooting), and AKS refuses a cluster without the role."""


@dataclass(frozen=True, kw_only=True)
class KubeletIdentity:
    """The identity that nodes use to pull images and mount storage.

    id: resource ID.
    client: ID that programs use for the identity.
    principal: object ID, which roles are assigned to.
    """

    id: pulumi.Input[str]
    client: pulumi.Input[str]
    principal: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class ClusterIdentitiesArgs:
    """The arguments of the identities.

    control_plane, kubelets: names of the identities.
    subnet_id: the nodes' subnet. The control plane joins nodes and load balancers to it.
    """

    control_plane: str
    kubelets: str
    scope: ResourceScope
    subnet_id: pulumi.Input[str]


def tagged_once(options: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """Return the options of an identity, whose tags apply at creation only.

    After a change of its tags, a preview would not know its IDs, and plan to replace its roles and volumes.
    """
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(ignore_changes=["tags"]))


class ClusterIdentities(Layer):
    """Create both identities. The control plane's may use the nodes' subnet and assign the other identity to nodes.

    The stack creates them, because a cluster's automatic identities exist only after the cluster. In a network that AKS
    does not manage, the control plane needs its roles before. The nodes' rights would also depend on the cluster's
    outputs, which a preview does not know after any change of the cluster
    (learn.microsoft.com/azure/aks/pre-created-kubelet-managed-identity).
    """

    id: pulumi.Output[str]
    """Resource ID of the control plane's identity."""
    principal: pulumi.Output[str]
    """Its object ID, which changes when it is recreated."""
    kubelets: KubeletIdentity

    ready: Sequence[pulumi.Resource]
    arrived: pulumi.Output[pulumi.Resource]
    """Depend on these two to create the cluster: its identities exist, and the control plane's roles are in effect."""

    def __init__(self, name: str, args: ClusterIdentitiesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:ClusterIdentities", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        control_plane, kubelets = (
            managedidentity.UserAssignedIdentity(
                identity, resource_name_=identity, **args.scope.arguments(), opts=tagged_once(options)
            )
            for identity in (args.control_plane, args.kubelets)
        )
        given = [
            roles.assign(
                f"{args.control_plane}-{what}",
                role=role,
                scope=scope,
                principal=control_plane.principal_id,
                opts=options,
            )
            for what, role, scope in (
                ("subnet", roles.NETWORK_CONTRIBUTOR, args.subnet_id),
                ("kubelets", roles.MANAGED_IDENTITY_OPERATOR, kubelets.id),
            )
        ]
        self.id = control_plane.id
        self.principal = control_plane.principal_id
        self.kubelets = KubeletIdentity(id=kubelets.id, client=kubelets.client_id, principal=kubelets.principal_id)
        self.ready = [control_plane, kubelets, *given]
        created = pulumi.Output.all(*(each.created_on for each in given))
        waited: pulumi.Output[None] = created.apply(self._wait)
        self.arrived = waited.apply(lambda _: given[-1])
        self.register_outputs({"id": self.id})

    async def _wait(self, created: list[Any]) -> None:
        """Wait until the newest role is old enough. A preview does not wait."""
        newest = max((datetime.fromisoformat(each) for each in created if each), default=None)
        if newest is None or pulumi.runtime.is_dry_run():
            return
        left = ARRIVAL_SECONDS - (datetime.now(UTC) - newest).total_seconds()
        if left > 0:
            pulumi.log.info(f"waiting {left:.0f} s until the new roles of the cluster's identity are in effect", self)
            await asyncio.sleep(left)
