"""Microsoft.Authorization: role assignments."""

from __future__ import annotations

import re

from emulator.azure.errors import ArmError
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import CLUSTER, Kind, Request
from emulator.azure.services.identity import UserAssignedIdentity
from emulator.azure.store import Properties, State

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


class RoleAssignment(Kind):
    """A role of a principal on a scope."""

    token = "azure-native:authorization:RoleAssignment"
    type = "Microsoft.Authorization/roleAssignments"
    path = "/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}"
    replaces = frozenset({"principalId", "scope"})

    def check(self, request: Request) -> None:
        name, scope = request.names["roleAssignmentName"], _scope(request)
        if not re.fullmatch(_GUID, name):
            raise ArmError(
                "InvalidRoleAssignmentId",
                f"The role assignment ID '{name}' is not valid. The role assignment ID must be a GUID.",
            )
        if request.state.get(scope) is None:
            raise ArmError("ResourceNotFound", f"The scope '{scope}' was not found.", status=404)
        _check_principal(request)
        mine = (request.body["principalId"], _definition(request), scope.lower())
        for other in request.others(self.type):
            theirs = tuple(other.properties[key] for key in ("principalId", "roleDefinitionId", "scope"))
            if mine == (*theirs[:2], theirs[2].lower()):
                raise ArmError(
                    "RoleAssignmentExists",
                    f"The role assignment already exists. The ID of the existing role assignment is {other.name}.",
                    status=409,
                )

    def computed(self, request: Request) -> Properties:
        return {"roleDefinitionId": _definition(request), "scope": _scope(request)}


def _scope(request: Request) -> str:
    return f"/{request.names['scope'].strip('/')}"


def _check_principal(request: Request) -> None:
    principal, kind = str(request.body["principalId"]), request.body.get("principalType", "User")
    exists = principal in _service_principals(request.facts, request.state)
    if exists and kind != "ServicePrincipal":
        raise ArmError(
            "UnmatchedPrincipalType",
            f"The PrincipalId '{principal.replace('-', '')}' has type 'ServicePrincipal', which is different from "
            f"specified PrincipalType '{kind}'.",
            hint="Set principalType to ServicePrincipal.",
        )
    if not exists and kind == "ServicePrincipal":
        raise ArmError(
            "PrincipalNotFound",
            f"Principal {principal.replace('-', '')} does not exist in the directory "
            f"{request.facts.tenant_id}. Check that you have the correct principal ID.",
        )


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
        raise ArmError(
            "RoleDefinitionDoesNotExist",
            f"The specified role definition with ID '{given}' does not exist.",
            hint="Its ID is /subscriptions/<id>/providers/Microsoft.Authorization/roleDefinitions/<guid>.",
        )
    subscription = f"/subscriptions/{request.facts.subscription_id}"
    return f"{subscription}/providers/Microsoft.Authorization/roleDefinitions/{guid}"
