"""Microsoft.ManagedIdentity: user assigned identities, their credentials, and the identity of a resource."""

from __future__ import annotations

import uuid

from emulator.azure.errors import ArmError, parent_not_found
from emulator.azure.services.base import Kind, NameRule, Request, require, stable_uuid
from emulator.azure.store import Properties

_LONGEST = 600
_MOST_CREDENTIALS = 20


class UserAssignedIdentity(Kind):
    """A managed identity. A recreated one with the same name has other ids."""

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
        before = request.before.properties if request.before is not None else {}
        ids = {key: before.get(key) or str(uuid.uuid4()) for key in ("clientId", "principalId")}
        return {**ids, "tenantId": request.facts.tenant_id}


class FederatedIdentityCredential(Kind):
    """Tokens that an identity accepts: those of one subject of one issuer.

    Source: learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations, for names, numbers,
    lengths and unique combinations.
    """

    token = "azure-native:managedidentity:FederatedIdentityCredential"
    type = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    path = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.ManagedIdentity"
        "/userAssignedIdentities/{resourceName}/federatedIdentityCredentials/{federatedIdentityCredentialResourceName}"
    )
    rule = NameRule(
        r"[A-Za-z0-9][\w-]{2,119}", "3-120 letters, digits, hyphens and underscores, a letter or digit at the start"
    )

    def check(self, request: Request) -> None:
        identity = request.id.rpartition("/federatedIdentityCredentials/")[0]
        if request.state.get(identity) is None:
            raise parent_not_found(identity)
        issuer, subject = str(request.body["issuer"]), str(request.body["subject"])
        audiences = request.body["audiences"]
        if len(audiences) != 1:
            raise _refused(f"one audience is required, not {len(audiences)}.")
        if not issuer.startswith("https://") or max(map(len, (issuer, subject, *audiences))) > _LONGEST:
            raise _refused(f"the issuer must be an https address, and no value longer than {_LONGEST} characters.")
        theirs = request.others(self.type, identity)
        if any((each.properties["issuer"], each.properties["subject"]) == (issuer, subject) for each in theirs):
            raise ArmError(
                "Conflict", "Issuer and subject combination already exists for this Managed Identity.", status=409
            )
        if len(theirs) >= _MOST_CREDENTIALS:
            raise ArmError("BadRequest", "Too many Federated Identity Credentials exist for the Managed Identity.")


def _refused(why: str) -> ArmError:
    return ArmError("BadRequest", f"The federated identity credential is not valid: {why}")


def identity_of(request: Request) -> Properties:
    """Return the `identity` that reads back, with its principals. Raises ArmError for unknown identities."""
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
