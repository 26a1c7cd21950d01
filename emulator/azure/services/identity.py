"""Microsoft.ManagedIdentity: user assigned identities, and which of them a resource acts as."""

from __future__ import annotations

from emulator.azure.errors import ArmError
from emulator.azure.services.base import Kind, NameRule, Request, require, stable_uuid
from emulator.azure.store import Properties


class UserAssignedIdentity(Kind):
    """A managed identity that lives on its own."""

    token = "azure-native:managedidentity:UserAssignedIdentity"
    type = "Microsoft.ManagedIdentity/userAssignedIdentities"
    path = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.ManagedIdentity"
        "/userAssignedIdentities/{resourceName}"
    )
    rule = NameRule(
        r"[A-Za-z0-9][\w-]{2,127}", "3-128 letters, digits, hyphens and underscores, a letter or digit at the start"
    )
    replaces = frozenset({"location"})
    tracked = True

    def computed(self, request: Request) -> Properties:
        return {
            "clientId": stable_uuid(request.id, "client"),
            "principalId": stable_uuid(request.id, "principal"),
            "tenantId": request.facts.tenant_id,
        }


def identity_of(request: Request) -> Properties:
    """Return the `identity` as it reads back: principals of what is assigned. Raises ArmError for unknown ones."""
    given = request.body["identity"]
    kind = str(given["type"])
    if kind == "SystemAssigned":
        principal = stable_uuid(request.id, "principal")
        return {"type": kind, "principalId": principal, "tenantId": request.facts.tenant_id}
    assigned = given.get("userAssignedIdentities") or []
    if not assigned:
        raise ArmError(
            "InvalidIdentityValues",
            "Invalid value for the identities. The 'UserAssigned' identity type requires at least one identity id.",
        )
    found = {each: require(request.state, each, f"the identity of {request.id}").properties for each in assigned}
    return {
        "type": kind,
        "userAssignedIdentities": {
            key: {"clientId": each["clientId"], "principalId": each["principalId"]} for key, each in found.items()
        },
    }
