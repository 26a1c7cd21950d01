"""The identity as which the pods of one namespace reach Azure: theirs alone, and not the nodes'.

A pod's service account is known to Entra by its token, which the cluster signs: a federated credential says whose
tokens stand for the identity (learn.microsoft.com/azure/aks/workload-identity-overview).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.scope import ResourceScope
from components.layer import Layer

AUDIENCE: Final = "api://AzureADTokenExchange"
"""Whom such tokens are for (learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations)."""
ACCOUNT: Final = "default"
"""The service account of pods that name none, as those of teams and workloads."""


@dataclass(frozen=True, kw_only=True)
class WorkloadIdentityArgs:
    """name: of the identity. issuer: of the cluster's tokens. namespace: whose pods act as it, those of `ACCOUNT`."""

    name: str
    scope: ResourceScope
    issuer: pulumi.Input[str]
    namespace: str


class WorkloadIdentity(Layer):
    """Create an identity, and trust the namespace's tokens to stand for it. What it may do is for others to say."""

    client: pulumi.Output[str]
    """Id by which programs name the identity."""
    principal: pulumi.Output[str]
    """Object id, which roles are given to."""
    ready: Sequence[pulumi.Resource]
    """Depend on these for pods that act as the identity."""

    def __init__(self, name: str, args: WorkloadIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:WorkloadIdentity", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            args.name, resource_name_=args.name, **args.scope.arguments(), opts=options
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
