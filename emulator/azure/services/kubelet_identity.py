"""The identity that nodes of a managed cluster use to pull images and mount storage."""

from emulator.azure.errors import invalid, refused
from emulator.azure.services.authorization import RoleAssignment
from emulator.azure.services.base import Request, at, group_id, require, stable_uuid
from emulator.azure.services.identity import identity_of
from emulator.azure.store import Properties

_GIVEN = "identityProfile.kubeletidentity"
_MANAGED_IDENTITY_OPERATOR = "f1a07417-d97a-45cb-824c-7a7467783830"


def kubelet_identity(request: Request, node_group: str) -> Properties:
    """Return the kubelet identity: the given one, else one in the nodes' resource group.

    Raises ArmError if AKS would reject the given one
    (https://learn.microsoft.com/azure/aks/pre-created-kubelet-managed-identity).
    """
    given = at(request.body, _GIVEN)
    if not given:
        group = group_id(request.facts, node_group)
        kind = "providers/Microsoft.ManagedIdentity/userAssignedIdentities"
        resource_id = f"{group}/{kind}/{request.names['resourceName']}-agentpool"
        return {
            "clientId": stable_uuid(resource_id, "client"),
            "objectId": stable_uuid(resource_id, "principal"),
            "resourceId": resource_id,
        }
    resource_id = str(given.get("resourceId", ""))
    kubelet = require(request.state, resource_id, f"the kubelet identity of {request.id}").properties
    found = {"clientId": kubelet["clientId"], "objectId": kubelet["principalId"], "resourceId": resource_id}
    for key, known in found.items():
        if given.get(key) not in (None, known):
            raise invalid(
                f"{key} {given[key]} of the kubelet identity is not the one of {resource_id}, {known}.",
                f"Leave {_GIVEN}.{key} out.",
            )
    _check_permission(request, resource_id)
    return found


def _check_permission(request: Request, resource_id: str) -> None:
    control_plane = identity_of(request).get("userAssignedIdentities")
    if not control_plane:
        raise refused("CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster")
    principals = {each["principalId"] for each in control_plane.values()}
    for role in request.state.of_type(RoleAssignment.type):
        is_above = resource_id.lower().startswith(role.properties["scope"].lower())
        is_operator = role.properties["roleDefinitionId"].endswith(_MANAGED_IDENTITY_OPERATOR)
        if is_above and is_operator and role.properties["principalId"] in principals:
            return
    raise refused("CustomKubeletIdentityMissingPermissionError", id=resource_id)
