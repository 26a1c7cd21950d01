"""Microsoft.Storage: accounts and their blob containers."""

from emulator.azure.errors import refused
from emulator.azure.services.base import Kind, Request, parent_of, require
from emulator.azure.store import Properties


class StorageAccount(Kind):
    """A storage account. Its name is unique in all of Azure."""

    token = "azure-native:storage:StorageAccount"

    def check(self, request: Request) -> None:
        name = request.names["accountName"]
        here = [each.name for each in request.others(self.type)]
        if request.creates and name in (*here, *request.facts.taken_storage_accounts):
            raise refused("StorageAccountAlreadyTaken", name=name)
        for rule in (request.body.get("networkRuleSet") or {}).get("virtualNetworkRules") or []:
            _check_subnet(request, str(rule["virtualNetworkResourceId"]))

    def computed(self, request: Request) -> Properties:
        name, sku = request.names["accountName"], request.body["sku"]["name"]
        endpoints = {key: f"https://{name}.{key}.core.windows.net/" for key in ("blob", "dfs", "file")}
        return {"primaryEndpoints": endpoints, "sku": {"name": sku, "tier": sku.partition("_")[0]}}


class BlobContainer(Kind):
    """A container of blobs."""

    token = "azure-native:storage:BlobContainer"

    def check(self, request: Request) -> None:
        account = parent_of(request, "blobServices")
        if request.body.get("publicAccess", "None") != "None" and not account.properties["allowBlobPublicAccess"]:
            raise refused("PublicAccessNotPermitted", account=account.name)


def _check_subnet(request: Request, subnet_id: str) -> None:
    subnet = require(request.state, subnet_id, f"the network rules of {request.id}")
    endpoints = [str(each.get("service")) for each in subnet.properties.get("serviceEndpoints") or []]
    if not any(each.startswith("Microsoft.Storage") for each in endpoints):
        raise refused("NetworkAclsValidationFailure", subnet=subnet_id)
