"""The managed identity as which the cluster's control plane acts in Azure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import managedidentity

from components.azure import roles


@dataclass(frozen=True, kw_only=True)
class ClusterIdentityArgs:
    """name: of the identity. subnet_id: the nodes' subnet, which it joins nodes and load balancers to."""

    name: str
    resource_group: str
    location: str
    subnet_id: pulumi.Input[str]
    tags: Mapping[str, str] = field(default_factory=dict)


class ClusterIdentity(pulumi.ComponentResource):
    """Create the control plane's identity and let it use the nodes' subnet.

    An identity of our own, because a cluster's automatic one exists only after the cluster, which needs the role to be
    created in a network that is not AKS' own.
    """

    id: pulumi.Output[str]

    ready: Sequence[pulumi.Resource]
    """Depend on these to create the cluster: the identity may use the subnet by then."""

    def __init__(self, name: str, args: ClusterIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:ClusterIdentity", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            args.name,
            resource_name_=args.name,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=dict(args.tags),
            opts=options,
        )
        role = roles.assign(
            f"{args.name}-subnet",
            role=roles.NETWORK_CONTRIBUTOR,
            scope=args.subnet_id,
            principal=identity.principal_id,
            opts=options,
        )
        self.id = identity.id
        self.ready = [identity, role]
        self.register_outputs({"id": self.id})
