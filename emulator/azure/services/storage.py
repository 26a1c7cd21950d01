"""Microsoft.Storage: accounts, blob containers, lifecycle policies."""

from __future__ import annotations

import base64
import os
from typing import Any

from emulator.azure.errors import ArmError
from emulator.azure.services.base import Kind, NameRule, Request, etag, merged, now, require, user_identities
from emulator.azure.store import Properties, Record

_ACCOUNT = (
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Storage/storageAccounts"
    "/{accountName}"
)


class StorageAccount(Kind):
    """A storage account, whose name is unique in the world."""

    token = "azure-native:storage:StorageAccount"
    type = "Microsoft.Storage/storageAccounts"
    path = _ACCOUNT
    rule = NameRule(r"[a-z0-9]{3,24}", "3-24 lower-case letters and digits")
    replaces = frozenset({"isHnsEnabled", "location"})
    tracked = True

    def check(self, request: Request) -> None:
        name = request.names["accountName"]
        here = (each.name.lower() for each in request.state.of_type(self.type))
        if request.creates and (name.lower() in here or request.facts.taken("storageAccounts", name)):
            raise ArmError(
                "StorageAccountAlreadyTaken",
                f"The storage account named {name} is already taken.",
                status=409,
                hint="Names of storage accounts are unique across Azure: choose another.",
            )
        if request.before is not None:
            had = bool(request.before.properties.get("isHnsEnabled"))
            if had != bool(request.body.get("isHnsEnabled", had)):
                raise ArmError(
                    "AccountPropertyCannotBeUpdated", "The property 'isHnsEnabled' cannot be updated.", status=409
                )
        for rule in (request.body.get("networkRuleSet") or {}).get("virtualNetworkRules") or []:
            _check_subnet(request, str(rule.get("virtualNetworkResourceId")))
        if request.body.get("enableNfsV3") and not request.kept("isHnsEnabled"):
            raise ArmError(
                "InvalidRequestPropertyValue",
                "The value 'True' is not allowed for property isNfsV3Enabled: it needs a hierarchical namespace.",
                hint="Set isHnsEnabled too.",
            )

    def complete(self, request: Request) -> Properties:
        name = request.names["accountName"]
        before = request.before.properties if request.before else {}
        created = before.get("creationTime", now())
        defaults = {
            "accessTier": "Hot",
            "allowBlobPublicAccess": False,
            "allowCrossTenantReplication": False,
            "enableHttpsTrafficOnly": True,
            "encryption": {
                "keySource": "Microsoft.Storage",
                "services": {
                    key: {"enabled": True, "keyType": "Account", "lastEnabledTime": created} for key in ("blob", "file")
                },
            },
            "minimumTlsVersion": "TLS1_0",
            "networkRuleSet": {
                "bypass": "AzureServices",
                "defaultAction": "Allow",
                "ipRules": [],
                "virtualNetworkRules": [],
            },
            "privateEndpointConnections": [],
        }
        sku = request.kept("sku")["name"]
        identity = user_identities(request)
        endpoints = {
            key: f"https://{name}.{key}.core.windows.net/" for key in ("blob", "dfs", "file", "queue", "table")
        }
        return merged(
            defaults,
            {
                **request.body,
                **({"identity": identity} if identity else {}),
                "creationTime": created,
                "keyCreationTime": {"key1": created, "key2": created},
                "location": request.location,
                "name": name,
                "primaryEndpoints": {**endpoints, "web": f"https://{name}.z6.web.core.windows.net/"},
                "primaryLocation": request.location,
                "provisioningState": "Succeeded",
                "sku": {"name": sku, "tier": sku.partition("_")[0]},
                "statusOfPrimary": "available",
                "type": self.type,
            },
        )

    def on_started(self, request: Request, record: Record) -> None:
        if "keys" not in record.hidden:
            record.hidden["keys"] = [base64.b64encode(os.urandom(64)).decode() for _ in range(2)]


class BlobContainer(Kind):
    """A container of blobs."""

    token = "azure-native:storage:BlobContainer"
    type = "Microsoft.Storage/storageAccounts/blobServices/containers"
    path = f"{_ACCOUNT}/blobServices/default/containers/{{containerName}}"
    rule = NameRule(
        r"(?=.{3,63}$)(?:\$root|\$web|\$logs|[a-z0-9]+(?:-[a-z0-9]+)*)",
        "3-63 lower-case letters, digits and hyphens, no two hyphens together, a letter or digit at both ends",
    )
    autoname = "copy"

    def check(self, request: Request) -> None:
        account = account_of(request)
        if request.body.get("publicAccess", "None") != "None" and not account.properties["allowBlobPublicAccess"]:
            raise ArmError(
                "PublicAccessNotPermitted",
                f"Public access is not permitted on this storage account ({account.name}).",
                status=409,
            )

    def complete(self, request: Request) -> Properties:
        return merged(
            {"publicAccess": "None"},
            {
                **request.body,
                "defaultEncryptionScope": request.body.get("defaultEncryptionScope", "$account-encryption-key"),
                "deleted": False,
                "denyEncryptionScopeOverride": request.body.get("denyEncryptionScopeOverride", False),
                "etag": f'"{etag()}"',
                "hasImmutabilityPolicy": False,
                "hasLegalHold": False,
                "lastModifiedTime": now(),
                "leaseState": "Available",
                "leaseStatus": "Unlocked",
                "name": request.names["containerName"],
                "remainingRetentionDays": 0,
                "type": self.type,
            },
        )


class ManagementPolicy(Kind):
    """The lifecycle rules of an account's blobs; an account has one such policy, named default."""

    token = "azure-native:storage:ManagementPolicy"
    type = "Microsoft.Storage/storageAccounts/managementPolicies"
    path = f"{_ACCOUNT}/managementPolicies/{{managementPolicyName}}"
    rule = NameRule("default", "no other name than 'default'")
    autoname = "copy"

    def check(self, request: Request) -> None:
        account_of(request)
        names = [str(rule.get("name")) for rule in (request.body.get("policy") or {}).get("rules") or []]
        if not names or len(names) != len(set(names)):
            raise ArmError(
                "InvalidRequestPropertyValue", f"The rules of {request.id} need one name each, no name twice: {names}"
            )

    def complete(self, request: Request) -> Properties:
        policy: dict[str, Any] = {**request.body["policy"]}
        policy["rules"] = [{"enabled": True, **rule} for rule in policy["rules"]]
        return {
            **request.body,
            "lastModifiedTime": now(),
            "name": "DefaultManagementPolicy",
            "policy": policy,
            "type": self.type,
        }


def _check_subnet(request: Request, subnet_id: str) -> None:
    subnet = require(request.state, subnet_id, f"the network rules of {request.id}")
    endpoints = [str(each.get("service")) for each in subnet.properties.get("serviceEndpoints") or []]
    if not any(each.startswith("Microsoft.Storage") for each in endpoints):
        raise ArmError(
            "NetworkAclsValidationFailure",
            "Validation of network acls failure: SubnetsHaveNoServiceEndpointsConfigured:Subnets "
            f"{subnet.name} of virtual network {subnet_id} do not have ServiceEndpoints for Microsoft.Storage "
            "resources configured.",
            hint="Add serviceEndpoints with service Microsoft.Storage to the subnet.",
        )


def account_of(request: Request) -> Record:
    """Return the storage account of a resource below it. Raises ArmError when there is none."""
    account_id = StorageAccount().id(request.facts, request.names)
    found = request.state.get(account_id)
    if found is None:
        raise ArmError("ParentResourceNotFound", f"The parent resource '{account_id}' could not be found.", status=404)
    return found
