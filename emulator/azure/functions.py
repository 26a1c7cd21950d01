"""The functions (invokes) that the emulated Azure answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from emulator.azure import credentials, schema
from emulator.azure.arm import Arm
from emulator.azure.errors import NotEmulatedError, not_found
from emulator.azure.services import KINDS
from emulator.azure.services.base import Kind
from emulator.azure.store import Properties, Record
from emulator.plugin.errors import ProviderError

_CLIENT = "azure-native:authorization:getClientConfig"
_CLUSTER = KINDS["azure-native:containerservice:ManagedCluster"]
_GETTERS: Mapping[str, Kind] = {
    f"{token.rpartition(':')[0]}:get{token.rpartition(':')[2]}": kind for token, kind in KINDS.items()
}


@dataclass(frozen=True, slots=True)
class _Action:
    """A function of an existing cluster. optional: arguments beside the names of its path, with their one value."""

    run: Callable[[Arm, Record], Properties]
    optional: Mapping[str, str] = field(default_factory=dict)


_ACTIONS: Mapping[str, _Action] = {
    "azure-native:containerservice:listManagedClusterAdminCredentials": _Action(
        lambda arm, cluster: credentials.administrator(cluster, arm.link.credentials())
    ),
    "azure-native:containerservice:listManagedClusterUserCredentials": _Action(
        lambda arm, cluster: credentials.user(arm.facts, cluster, arm.link.credentials()), {"format": "exec"}
    ),
}


def answer(arm: Arm, token: str, arguments: Mapping[str, Any]) -> Properties:
    """Answer a function. Raises NotEmulatedError for one that is not emulated, ArmError when Azure refuses."""
    if token == _CLIENT:
        own = arm.facts.subscription
        found = {"clientId": own.client_id, "objectId": own.object_id}
        return {**found, "subscriptionId": own.id, "tenantId": own.tenant_id}
    action, kind = _ACTIONS.get(token), _GETTERS.get(token, _CLUSTER)
    if action is None and token not in _GETTERS:
        raise NotEmulatedError(token, ", ".join([_CLIENT, *_ACTIONS, *_GETTERS]))
    names = _names(token, kind.parameters, action.optional if action else {}, arguments)
    resource_id = kind.id(arm.facts, names)
    if action is not None:
        record = arm.record(resource_id)
        if record is None:
            raise not_found(resource_id)
        return action.run(arm, record)
    response = arm.look(kind, names)
    if response is None:
        raise not_found(resource_id)
    return {**response, "azureApiVersion": schema.resource(kind.token).api_version, "id": resource_id}


def _names(
    token: str, needed: Sequence[str], optional: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, str]:
    for name, value in arguments.items():
        if name not in needed and value != optional.get(name):
            has = ", ".join([*needed, *(f"{key} ({only})" for key, only in optional.items())])
            raise ProviderError(f"{token} is emulated with no argument {name} ({value}); it has {has}")
    missing = [name for name in needed if not arguments.get(name)]
    if missing:
        raise ProviderError(f"{token} needs {', '.join(missing)}")
    return {name: str(arguments[name]) for name in needed}
