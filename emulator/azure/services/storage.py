"""Microsoft.Storage: accounts and their blob containers."""

from __future__ import annotations

from typing import ClassVar

from emulator.azure.errors import ArmError, parent_not_found
from emulator.azure.services.base import Kind, NameRule, Request, require
from emulator.azure.store import Properties

_ACCOUNT = (
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Storage/storageAccounts"
    "/{accountName}"
)


class StorageAccount(Kind):
    """A storage account. Its name is unique in all of Azure."""

    token = "azure-native:storage:StorageAccount"
    type = "Microsoft.Storage/storageAccounts"
    path = _ACCOUNT
    rule = NameRule(r"[a-z0-9]{3,24}", "3-24 lower-case letters and digits")
    replaces = frozenset({"isHnsEnabled", "location"})
    tracked = True
    defaults: ClassVar = {
        "accessTier": "Hot",
        "allowBlobPublicAccess": False,
        "allowCrossTenantReplication": False,
        "enableHttpsTrafficOnly": True,
        "minimumTlsVersion": "TLS1_0",
        "networkRuleSet": {
            "bypass": "AzureServices",
            "defaultAction": "Allow",
            "ipRules": [],
            "virtualNetworkRules": [],
        },
        "provisioningState": "Succeeded",
    }

    def check(self, request: Request) -> None:
        name = request.names["accountName"]
        here = [each.name for each in request.others(self.type)]
        if request.creates and name in (*here, *request.facts.taken_storage_accounts):
            raise ArmError(
                "StorageAccountAlreadyTaken",
                f"The storage account named {name} is already taken.",
                status=409,
                hint="Names of storage accounts are unique across Azure: choose another.",
            )
        for rule in (request.body.get("networkRuleSet") or {}).get("virtualNetworkRules") or []:
            _check_subnet(request, str(rule["virtualNetworkResourceId"]))

    def computed(self, request: Request) -> Properties:
        name, sku = request.names["accountName"], request.body["sku"]["name"]
        endpoints = {key: f"https://{name}.{key}.core.windows.net/" for key in ("blob", "dfs", "file")}
        return {"primaryEndpoints": endpoints, "sku": {"name": sku, "tier": sku.partition("_")[0]}}


class BlobContainer(Kind):
    """A container of blobs."""

    token = "azure-native:storage:BlobContainer"
    type = "Microsoft.Storage/storageAccounts/blobServices/containers"
    path = f"{_ACCOUNT}/blobServices/default/containers/{{containerName}}"
    rule = NameRule(
        r"(?=.{3,63}$)(?:\$root|\$web|\$logs|[a-z0-9]+(?:-[a-z0-9]+)*)",
        "3-63 lower-case letters, digits and hyphens, no two hyphens together, a letter or digit at both ends",
    )
    defaults: ClassVar = {"publicAccess": "None"}

    def check(self, request: Request) -> None:
        account_id = request.id.rpartition("/blobServices/")[0]
        account = request.state.get(account_id)
        if account is None:
            raise parent_not_found(account_id)
        if request.body.get("publicAccess", "None") != "None" and not account.properties["allowBlobPublicAccess"]:
            raise ArmError(
                "PublicAccessNotPermitted",
                f"Public access is not permitted on this storage account ({account.name}).",
                status=409,
            )


def _check_subnet(request: Request, subnet_id: str) -> None:
    subnet = require(request.state, subnet_id, f"the network rules of {request.id}")
    endpoints = [str(each.get("service")) for each in subnet.properties.get("serviceEndpoints") or []]
    if not any(each.startswith("Microsoft.Storage") for each in endpoints):
        raise ArmError(
            "NetworkAclsValidationFailure",
            f"SubnetsHaveNoServiceEndpointsConfigured: {subnet_id} has no service endpoint for Microsoft.Storage.",
            hint="Add serviceEndpoints with service Microsoft.Storage to the subnet.",
        )
