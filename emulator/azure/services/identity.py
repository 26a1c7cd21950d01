"""Microsoft.ManagedIdentity: user assigned identities, their credentials, and the identity of a resource."""

import uuid

from emulator.azure.errors import refused
from emulator.azure.services.base import Kind, Request, parent_of, require, stable_uuid
from emulator.azure.store import Properties

_LONGEST = 600
_MOST_CREDENTIALS = 20


class UserAssignedIdentity(Kind):
    """A managed identity. A recreated one with the same name has other ids."""

    token = "azure-native:managedidentity:UserAssignedIdentity"

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

    def check(self, request: Request) -> None:
        identity = parent_of(request, "federatedIdentityCredentials").id
        issuer, subject = str(request.body["issuer"]), str(request.body["subject"])
        audiences = request.body["audiences"]
        if len(audiences) != 1:
            raise refused("InvalidFederatedCredential", why=f"one audience is required, not {len(audiences)}.")
        if not issuer.startswith("https://") or max(map(len, (issuer, subject, *audiences))) > _LONGEST:
            raise refused(
                "InvalidFederatedCredential",
                why=f"the issuer must be an https address, and no value longer than {_LONGEST} characters.",
            )
        theirs = request.others(self.type, identity)
        if any((each.properties["issuer"], each.properties["subject"]) == (issuer, subject) for each in theirs):
            raise refused("FederatedCredentialExists")
        if len(theirs) >= _MOST_CREDENTIALS:
            raise refused("TooManyFederatedCredentials")


def identity_of(request: Request) -> Properties:
    """Return the `identity` that reads back, with its principals. Raises ArmError for unknown identities."""
    given = request.body["identity"]
    kind = str(given["type"])
    if kind == "SystemAssigned":
        principal = stable_uuid(request.id, "principal")
        return {"type": kind, "principalId": principal, "tenantId": request.facts.tenant_id}
    assigned = given.get("userAssignedIdentities") or []
    if not assigned:
        raise refused("InvalidIdentityValues")
    found = {each: require(request.state, each, f"the identity of {request.id}").properties for each in assigned}
    return {
        "type": kind,
        "userAssignedIdentities": {
            key: {"clientId": each["clientId"], "principalId": each["principalId"]} for key, each in found.items()
        },
    }
