"""Assignments of Azure's built-in roles."""

import uuid
from typing import Final

import pulumi
from pulumi_azure_native import authorization

ACR_PULL: Final = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
CLUSTER_USER: Final = "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"
MANAGED_IDENTITY_OPERATOR: Final = "f1a07417-d97a-45cb-824c-7a7467783830"
BLOB_DATA_READER: Final = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"
BLOB_DATA_CONTRIBUTOR: Final = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
"""Built-in roles, the same everywhere (learn.microsoft.com/azure/role-based-access-control/built-in-roles)."""


def assign(
    name: str,
    *,
    role: str,
    scope: pulumi.Input[str],
    principal: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    kind: authorization.PrincipalType = authorization.PrincipalType.SERVICE_PRINCIPAL,
) -> authorization.RoleAssignment:
    """Assign a built-in role, for a resource and all resources below it.

    principal: object ID of a managed identity, or what kind says. A new identity may not be on every directory server
    yet. Azure accepts it, because its type is given.
    """
    return authorization.RoleAssignment(
        name,
        role_assignment_name=pulumi.Output.all(scope, principal).apply(
            lambda ids: assignment_name(ids[0], role, ids[1])
        ),
        role_definition_id=pulumi.Output.from_input(scope).apply(lambda scope: role_definition(scope, role)),
        scope=scope,
        principal_id=principal,
        principal_type=kind,
        opts=opts,
    )


def assignment_name(scope: str, role: str, principal: str) -> str:
    """Return an assignment's name, a GUID that is the same for the same arguments.

    It differs for another principal, because Azure cannot change the principal of an existing assignment.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{scope.lower()}/{role}/{principal.lower()}"))


def role_definition(scope: str, role: str) -> str:
    """Return a built-in role's full ID in the subscription of a resource, the form that Azure reports."""
    subscription = "/".join(scope.split("/")[:3])
    return f"{subscription}/providers/Microsoft.Authorization/roleDefinitions/{role}"
