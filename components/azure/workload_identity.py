"""The Azure identity of one namespace's pods, separate from the nodes' identity.

The cluster signs the token of a pod's service account. A federated credential makes Entra accept such tokens for the
identity (learn.microsoft.com/azure/aks/workload-identity-overview).
"""

from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.identity import tagged_once
from components.azure.scope import ResourceScope
from components.layer import Layer

AUDIENCE: Final = "api://AzureADTokenExchange"
"""Audience of such tokens (learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations)."""
ACCOUNT: Final = "default"
"""Service account of pods that name none, such as those of teams and workloads."""


@dataclass(frozen=True, kw_only=True)
class WorkloadIdentityArgs:
    """issuer: of the cluster's tokens. namespace: its pods with the service account `ACCOUNT` act as the identity."""

    name: str
    scope: ResourceScope
    issuer: pulumi.Input[str]
    namespace: str


class WorkloadIdentity(Layer):
    """Create an identity that trusts the namespace's tokens. It does not assign any rights."""

    client: pulumi.Output[str]
    """Client ID, which programs use for the identity."""
    principal: pulumi.Output[str]
    """Object ID, which roles are assigned to."""

    def __init__(self, name: str, args: WorkloadIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:WorkloadIdentity", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            args.name, resource_name_=args.name, **args.scope.arguments(), opts=tagged_once(options)
        )
        trust = managedidentity.FederatedIdentityCredential(
            f"{args.name}-{ACCOUNT}",
            federated_identity_credential_resource_name=ACCOUNT,
            resource_name_=args.name,
            resource_group_name=args.scope.resource_group,
            issuer=args.issuer,
            subject=f"system:serviceaccount:{args.namespace}:{ACCOUNT}",
            audiences=[AUDIENCE],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[identity]),
        )
        self.client, self.principal = identity.client_id, identity.principal_id
        self.ready = [identity, trust]
        self.register_outputs({"client": self.client})
