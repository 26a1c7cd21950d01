"""Microsoft.ManagedIdentity: user assigned identities and their federated credentials."""

from __future__ import annotations

from emulator.azure.errors import ArmError
from emulator.azure.services.base import Kind, NameRule, Request, stable_uuid
from emulator.azure.store import Properties

_IDENTITY = (
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.ManagedIdentity"
    "/userAssignedIdentities/{resourceName}"
)
_RULE = NameRule(
    r"[A-Za-z0-9][\w-]{2,127}", "3-128 letters, digits, hyphens and underscores, a letter or digit at the start"
)
_MOST_CREDENTIALS = 20


class UserAssignedIdentity(Kind):
    """A managed identity that lives on its own."""

    token = "azure-native:managedidentity:UserAssignedIdentity"
    type = "Microsoft.ManagedIdentity/userAssignedIdentities"
    path = _IDENTITY
    rule = _RULE
    replaces = frozenset({"location"})
    tracked = True

    def complete(self, request: Request) -> Properties:
        return {
            **request.body,
            "clientId": stable_uuid(request.id, "client"),
            "location": request.location,
            "name": request.names["resourceName"],
            "principalId": stable_uuid(request.id, "principal"),
            "tenantId": request.facts.tenant,
            "type": self.type,
        }


class FederatedIdentityCredential(Kind):
    """Lets tokens of an outside issuer, such as a cluster's service accounts, sign in as an identity."""

    token = "azure-native:managedidentity:FederatedIdentityCredential"
    type = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    path = f"{_IDENTITY}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}"
    rule = NameRule(
        r"[A-Za-z0-9][\w-]{2,119}", "3-120 letters, digits, hyphens and underscores, a letter or digit at the start"
    )
    autoname = "copy"

    def check(self, request: Request) -> None:
        parent = request.id.rpartition("/federatedIdentityCredentials/")[0]
        if request.state.get(parent) is None:
            raise ArmError("ParentResourceNotFound", f"The parent resource '{parent}' could not be found.", status=404)
        issuer = str(request.body.get("issuer", ""))
        if not issuer.startswith("https://"):
            raise ArmError("BadRequest", f"The issuer '{issuer}' of {request.id} is not an https URL.")
        if len(request.body.get("audiences") or []) != 1:
            raise ArmError("BadRequest", f"{request.id} needs exactly one audience, e.g. api://AzureADTokenExchange.")
        others = [e for e in request.state.of_type(self.type, parent) if e.id.lower() != request.id.lower()]
        for other in others:
            if all(other.properties[key] == request.body.get(key) for key in ("issuer", "subject")):
                raise ArmError(
                    "Conflict",
                    f"Issuer and subject combination already exists for this Managed Identity, in {other.name}.",
                    status=409,
                )
        if len(others) >= _MOST_CREDENTIALS:
            raise ArmError("BadRequest", f"There are {len(others)} federated identity credentials; 20 are the most.")

    def complete(self, request: Request) -> Properties:
        name = request.names["federatedIdentityCredentialResourceName"]
        return {**request.body, "name": name, "type": self.type}
