"""The functions (invokes) of the emulated Azure."""

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.azure import credentials, schema
from emulator.azure.arm import Arm
from emulator.azure.errors import NotEmulatedError, not_found
from emulator.azure.services import KINDS
from emulator.azure.services.base import Kind
from emulator.azure.store import Properties
from emulator.plugin.errors import ProviderError

_CLIENT = "azure-native:authorization:getClientConfig"
_ADMINISTRATOR = "azure-native:containerservice:listManagedClusterAdminCredentials"
_USER = "azure-native:containerservice:listManagedClusterUserCredentials"
_CLUSTER = KINDS["azure-native:containerservice:ManagedCluster"]
_GETTERS: Mapping[str, Kind] = {
    f"{token.rpartition(':')[0]}:get{token.rpartition(':')[2]}": kind for token, kind in KINDS.items()
}


def answer(arm: Arm, token: str, arguments: Mapping[str, Any]) -> Properties:
    """Return a function's result. Raises NotEmulatedError for unknown ones, ArmError if Azure would reject it."""
    if token == _CLIENT:
        found = {"clientId": arm.facts.client_id, "objectId": arm.facts.object_id}
        return {**found, "subscriptionId": arm.facts.subscription_id, "tenantId": arm.facts.tenant_id}
    if token in (_ADMINISTRATOR, _USER):
        optional = {"format": "exec"} if token == _USER else {}
        resource_id = _CLUSTER.id(arm.facts, _names(token, _CLUSTER.parameters, optional, arguments))
        cluster = arm.record(resource_id)
        if cluster is None:
            raise not_found(resource_id)
        if token == _USER:
            return credentials.user(arm.facts, cluster, arm.link.credentials())
        return credentials.administrator(cluster, arm.link.credentials())
    kind = _GETTERS.get(token)
    if kind is None:
        raise NotEmulatedError(token, ", ".join([_CLIENT, _ADMINISTRATOR, _USER, *_GETTERS]))
    names = _names(token, kind.parameters, {}, arguments)
    resource_id, response = kind.id(arm.facts, names), arm.look(kind, names)
    if response is None:
        raise not_found(resource_id)
    return {**response, "azureApiVersion": schema.resource(kind.token).api_version, "id": resource_id}


def _names(
    token: str, needed: Sequence[str], optional: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the names in the arguments. optional: other arguments that are allowed, each with its only value."""
    for name, value in arguments.items():
        if name not in needed and value != optional.get(name):
            has = ", ".join([*needed, *(f"{key} ({only})" for key, only in optional.items())])
            raise ProviderError(f"{token}: the argument {name} ({value}) is not emulated. Use {has}")
    missing = [name for name in needed if not arguments.get(name)]
    if missing:
        raise ProviderError(f"{token} needs {', '.join(missing)}")
    return {name: str(arguments[name]) for name in needed}
