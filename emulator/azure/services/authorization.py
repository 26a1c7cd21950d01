"""Microsoft.Authorization: role assignments."""

import re
from datetime import UTC, datetime, timedelta

from emulator.azure.errors import refused
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import CLUSTER, Kind, Request
from emulator.azure.services.identity import UserAssignedIdentity
from emulator.azure.store import Properties, State

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

_ARRIVAL = timedelta(minutes=10)
"""Azure's longest time until a role is in effect."""


class RoleAssignment(Kind):
    """A role of a principal on a scope. It is in effect at once, so it claims to have been created before."""

    token = "azure-native:authorization:RoleAssignment"

    def check(self, request: Request) -> None:
        name, scope = request.names["roleAssignmentName"], _scope(request)
        if not re.fullmatch(_GUID, name):
            raise refused("InvalidRoleAssignmentId", name=name)
        if request.state.get(scope) is None:
            raise refused("ScopeNotFound", scope=scope)
        _check_principal(request)
        mine = (request.body["principalId"], _definition(request), scope.lower())
        for other in request.others(self.type):
            theirs = tuple(other.properties[key] for key in ("principalId", "roleDefinitionId", "scope"))
            if mine == (*theirs[:2], theirs[2].lower()):
                raise refused("RoleAssignmentExists", name=other.name)

    def computed(self, request: Request) -> Properties:
        before = request.before.properties if request.before else {}
        created = before.get("createdOn") or (datetime.now(UTC) - _ARRIVAL).isoformat()
        return {"roleDefinitionId": _definition(request), "scope": _scope(request), "createdOn": created}


def _scope(request: Request) -> str:
    return f"/{request.names['scope'].strip('/')}"


def _check_principal(request: Request) -> None:
    principal, kind = str(request.body["principalId"]), request.body.get("principalType", "User")
    exists = principal in _service_principals(request.facts, request.state)
    if exists and kind != "ServicePrincipal":
        raise refused("UnmatchedPrincipalType", principal=principal.replace("-", ""), type=kind)
    if not exists and kind == "ServicePrincipal":
        raise refused("PrincipalNotFound", principal=principal.replace("-", ""), tenant=request.facts.tenant_id)


def _service_principals(facts: AzureFacts, state: State) -> set[str]:
    """Return the object ids of all managed identities and of the identity that runs the program."""
    found = {facts.object_id}
    found |= {each.properties["principalId"] for each in state.of_type(UserAssignedIdentity.type)}
    for cluster in state.of_type(CLUSTER):
        found.add(str(cluster.properties["identity"].get("principalId")))
        found |= {str(each["objectId"]) for each in cluster.properties["identityProfile"].values()}
    return found


def _definition(request: Request) -> str:
    given = str(request.body["roleDefinitionId"])
    guid = given.rpartition("/")[2]
    if guid not in request.facts.roles or "/providers/Microsoft.Authorization/roleDefinitions/" not in f"/{given}":
        raise refused("RoleDefinitionDoesNotExist", id=given)
    subscription = f"/subscriptions/{request.facts.subscription_id}"
    return f"{subscription}/providers/Microsoft.Authorization/roleDefinitions/{guid}"
