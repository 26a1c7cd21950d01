"""The functions (invokes) that the emulated Azure answers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from emulator.azure import credentials, schema
from emulator.azure.arm import Arm
from emulator.azure.errors import ArmError, NotEmulatedError, not_found
from emulator.azure.schema import UnknownTokenError
from emulator.azure.services import KINDS
from emulator.azure.services.base import Kind
from emulator.azure.services.containerservice import ManagedCluster
from emulator.azure.services.registry import Registry
from emulator.azure.services.storage import StorageAccount
from emulator.azure.store import Properties, Record
from emulator.plugin.errors import ProviderError

_SAS_VERSION = "2022-11-02"
"""The version of the storage service whose tokens these look like."""

Arguments = Mapping[str, Any]


def answer(arm: Arm, token: str, arguments: Properties) -> Properties:
    """Answer a function. Raises NotEmulatedError for one that is not emulated, ArmError when Azure refuses."""
    special = _FUNCTIONS.get(token)
    kind = _GETTERS.get(token)
    if special is None and kind is None:
        raise NotEmulatedError(token, ", ".join([*_FUNCTIONS, *_GETTERS]))
    _check_arguments(token, arguments)
    if kind is not None:
        names = _names(token, kind, arguments)
        resource_id = kind.id(arm.facts, names)
        found = arm.look(kind, names)
        if found is None:
            raise not_found(resource_id)
        return {**found, "azureApiVersion": schema.resource(kind.token).api_version, "id": resource_id}
    assert special is not None
    return special(arm, arguments)


def _check_arguments(token: str, arguments: Properties) -> None:
    try:
        known = schema.function(token)
    except UnknownTokenError:
        raise NotEmulatedError(token, ", ".join([*_FUNCTIONS, *_GETTERS])) from None
    unknown = sorted(arguments.keys() - known.keys())
    if unknown:
        raise ProviderError(f"{token} has no argument {unknown[0]}; it has {', '.join(sorted(known)) or 'none'}")


def _names(token: str, kind: Kind, arguments: Arguments) -> dict[str, str]:
    missing = [name for name in kind.parameters if not arguments.get(name)]
    if missing:
        raise ProviderError(f"{token} needs {', '.join(missing)}")
    return {name: str(arguments[name]) for name in kind.parameters}


def _record(arm: Arm, token: str, kind: Kind, arguments: Arguments) -> Record:
    resource_id = kind.id(arm.facts, _names(token, kind, arguments))
    found = arm.record(resource_id)
    if found is None:
        raise not_found(resource_id)
    return found


def _client_config(arm: Arm, arguments: Arguments) -> Properties:
    return dict(arm.facts.client)


def _user_credentials(arm: Arm, arguments: Arguments) -> Properties:
    cluster = _record(arm, "listManagedClusterUserCredentials", ManagedCluster(), arguments)
    return credentials.user(arm.facts, cluster, arm.link.credentials(), str(arguments.get("format") or "exec"))


def _admin_credentials(arm: Arm, arguments: Arguments) -> Properties:
    cluster = _record(arm, "listManagedClusterAdminCredentials", ManagedCluster(), arguments)
    return credentials.administrator(cluster, arm.link.credentials())


def _registry_credentials(arm: Arm, arguments: Arguments) -> Properties:
    registry = _record(arm, "listRegistryCredentials", Registry(), arguments)
    if not registry.properties["adminUserEnabled"]:
        raise ArmError(
            "UnAuthorizedForCredentialOperations",
            f"Cannot perform credential operations for {registry.id} as admin user is disabled. Kindly enable admin "
            "user as per docs: https://docs.microsoft.com/en-us/azure/container-registry/"
            "container-registry-authentication#admin-account",
            hint="Better: give the identity that pulls the role AcrPull.",
        )
    words = [hashlib.sha256(f"{registry.id}{index}".encode()).hexdigest()[:52] for index in (1, 2)]
    passwords = [{"name": f"password{suffix}", "value": word} for suffix, word in zip(("", "2"), words, strict=True)]
    return {"passwords": passwords, "username": registry.name}


def _account_keys(arm: Arm, arguments: Arguments) -> Properties:
    account = _record(arm, "listStorageAccountKeys", StorageAccount(), arguments)
    return {
        "keys": [
            {
                "creationTime": account.properties["creationTime"],
                "keyName": f"key{index}",
                "permissions": "FULL",
                "value": key,
            }
            for index, key in enumerate(account.hidden["keys"], 1)
        ]
    }


def _service_sas(arm: Arm, arguments: Arguments) -> Properties:
    account = _record(arm, "listStorageAccountServiceSAS", StorageAccount(), arguments)
    _need("listStorageAccountServiceSAS", arguments, "canonicalizedResource")
    if not arguments.get("identifier"):
        _need("listStorageAccountServiceSAS", arguments, "permissions", "sharedAccessExpiryTime")
    resource = str(arguments["canonicalizedResource"])
    prefix = f"/blob/{account.name}/"
    if not resource.startswith(prefix):
        raise ArmError(
            "InvalidValuesForRequestParameters",
            f"Values for request parameters are invalid: canonicalizedResource '{resource}'.",
            hint=f"It begins with {prefix}, then the container.",
        )
    fields = {"sv": _SAS_VERSION, "sr": arguments.get("resource", "c"), **_common(arguments)}
    return {"serviceSasToken": _signed(account, fields, resource)}


def _account_sas(arm: Arm, arguments: Arguments) -> Properties:
    account = _record(arm, "listStorageAccountSAS", StorageAccount(), arguments)
    needed = ("permissions", "resourceTypes", "services", "sharedAccessExpiryTime")
    _need("listStorageAccountSAS", arguments, *needed)
    fields = {"sv": _SAS_VERSION, "ss": arguments["services"], "srt": arguments["resourceTypes"], **_common(arguments)}
    return {"accountSasToken": _signed(account, fields, account.name)}


def _common(arguments: Arguments) -> dict[str, Any]:
    return {
        "sp": arguments.get("permissions"),
        "st": arguments.get("sharedAccessStartTime"),
        "se": arguments.get("sharedAccessExpiryTime"),
        "si": arguments.get("identifier"),
        "sip": arguments.get("iPAddressOrRange"),
        "spr": arguments.get("protocols"),
    }


def _signed(account: Record, fields: Mapping[str, Any], resource: str) -> str:
    given = {key: str(value) for key, value in fields.items() if value}
    key = base64.b64decode(account.hidden["keys"][0])
    signature = hmac.new(key, "\n".join([*given.values(), resource]).encode(), hashlib.sha256).digest()
    return urllib.parse.urlencode({**given, "sig": base64.b64encode(signature).decode()})


def _need(token: str, arguments: Arguments, *names: str) -> None:
    missing = [name for name in names if not arguments.get(name)]
    if missing:
        raise ArmError(
            "InvalidValuesForRequestParameters",
            f"Values for request parameters are invalid: {', '.join(missing)} of {token} missing.",
        )


_FUNCTIONS: Mapping[str, Callable[[Arm, Arguments], Properties]] = {
    "azure-native:authorization:getClientConfig": _client_config,
    "azure-native:containerregistry:listRegistryCredentials": _registry_credentials,
    "azure-native:containerservice:listManagedClusterAdminCredentials": _admin_credentials,
    "azure-native:containerservice:listManagedClusterUserCredentials": _user_credentials,
    "azure-native:storage:listStorageAccountKeys": _account_keys,
    "azure-native:storage:listStorageAccountSAS": _account_sas,
    "azure-native:storage:listStorageAccountServiceSAS": _service_sas,
}

_GETTERS: Mapping[str, Kind] = {
    f"{token.rpartition(':')[0]}:get{token.rpartition(':')[2]}": kind for token, kind in KINDS.items()
}
