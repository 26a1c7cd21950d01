"""Microsoft.Authorization: role assignments."""

from __future__ import annotations

import re

from emulator.azure.errors import ArmError
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import Kind, Request, now
from emulator.azure.services.containerservice import ManagedCluster
from emulator.azure.services.identity import UserAssignedIdentity
from emulator.azure.store import Properties, State

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


class RoleAssignment(Kind):
    """A role of a principal on a scope."""

    token = "azure-native:authorization:RoleAssignment"
    type = "Microsoft.Authorization/roleAssignments"
    path = "/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}"
    replaces = frozenset({"principalId", "scope"})
    autoname = "uuid"

    def check(self, request: Request) -> None:
        name = request.names["roleAssignmentName"]
        if not re.fullmatch(_GUID, name):
            raise ArmError(
                "InvalidRoleAssignmentId",
                f"The role assignment ID '{name}' is not valid. The role assignment ID must be a GUID.",
            )
        self._check_scope(request)
        self._check_principal(request)
        definition = _definition(request)
        for other in request.state.of_type(self.type):
            mine = (request.body["principalId"], definition, f"/{request.names['scope'].strip('/')}".lower())
            theirs = (other.properties["principalId"], other.properties["roleDefinitionId"])
            if other.id.lower() != request.id.lower() and mine == (*theirs, other.properties["scope"].lower()):
                raise ArmError(
                    "RoleAssignmentExists",
                    f"The role assignment already exists. The ID of the existing role assignment is {other.name}.",
                    status=409,
                )
        if request.before is not None and request.before.properties["principalId"] != request.body["principalId"]:
            raise ArmError(
                "RoleAssignmentUpdateNotPermitted",
                "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
            )

    def complete(self, request: Request) -> Properties:
        moment = now()
        before = request.before.properties if request.before else {}
        return {
            **request.body,
            "createdBy": request.facts.client["objectId"],
            "createdOn": before.get("createdOn", moment),
            "name": request.names["roleAssignmentName"],
            "roleDefinitionId": _definition(request),
            "scope": f"/{request.names['scope'].strip('/')}",
            "type": self.type,
            "updatedBy": request.facts.client["objectId"],
            "updatedOn": moment,
        }

    def _check_scope(self, request: Request) -> None:
        scope = f"/{request.names['scope'].strip('/')}"
        whole = f"/subscriptions/{request.facts.subscription}"
        if not scope.lower().startswith(whole):
            raise ArmError(
                "AuthorizationFailed",
                f"The client '{request.facts.client['clientId']}' does not have authorization to perform action "
                f"'Microsoft.Authorization/roleAssignments/write' over scope '{scope}' or the scope is invalid.",
                status=403,
            )
        if scope.lower() != whole and request.state.get(scope) is None:
            raise ArmError("ResourceNotFound", f"The scope '{scope}' was not found.", status=404)

    def _check_principal(self, request: Request) -> None:
        principal, kind = str(request.body["principalId"]), request.body.get("principalType", "User")
        if not re.fullmatch(_GUID, principal):
            raise ArmError(
                "InvalidPrincipalId", f"A valid principal ID must be provided for role assignment: {principal}"
            )
        if principal in service_principals(request.facts, request.state):
            if kind != "ServicePrincipal":
                raise ArmError(
                    "UnmatchedPrincipalType",
                    f"The PrincipalId '{principal.replace('-', '')}' has type 'ServicePrincipal', which is different "
                    f"from specified PrincipalType '{kind}'.",
                    hint="Set principalType to ServicePrincipal.",
                )
        elif kind == "ServicePrincipal":
            raise ArmError(
                "PrincipalNotFound",
                f"Principal {principal.replace('-', '')} does not exist in the directory {request.facts.tenant}. "
                "Check that you have the correct principal ID.",
            )


def service_principals(facts: AzureFacts, state: State) -> set[str]:
    """Return the object ids of all managed identities and of the identity that runs the program."""
    found = {facts.client["objectId"]}
    found |= {each.properties["principalId"] for each in state.of_type(UserAssignedIdentity.type)}
    for cluster in state.of_type(ManagedCluster.type):
        found.add(str((cluster.properties.get("identity") or {}).get("principalId")))
        found |= {str(each.get("objectId")) for each in (cluster.properties.get("identityProfile") or {}).values()}
    return found


def _definition(request: Request) -> str:
    given = str(request.body["roleDefinitionId"])
    guid = given.rpartition("/")[2]
    if request.facts.role(guid) is None or "/providers/Microsoft.Authorization/roleDefinitions/" not in f"/{given}":
        raise ArmError(
            "RoleDefinitionDoesNotExist",
            f"The specified role definition with ID '{given}' does not exist.",
            hint="Its ID is /subscriptions/<id>/providers/Microsoft.Authorization/roleDefinitions/<guid>.",
        )
    return f"/subscriptions/{request.facts.subscription}/providers/Microsoft.Authorization/roleDefinitions/{guid}"
