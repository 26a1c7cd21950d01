"""Microsoft.ContainerRegistry: registries."""

from emulator.azure.errors import refused
from emulator.azure.services.base import Kind, Request
from emulator.azure.store import Properties


class Registry(Kind):
    """A container registry. Its name is unique in all of Azure."""

    token = "azure-native:containerregistry:Registry"

    def check(self, request: Request) -> None:
        name = request.names["registryName"].lower()
        here = [each.name.lower() for each in request.others(self.type)]
        if request.creates and name in (*here, *request.facts.taken_registries):
            raise refused("RegistryTaken", name=name)

    def computed(self, request: Request) -> Properties:
        sku = request.body["sku"]["name"]
        server = f"{request.names['registryName'].lower()}.azurecr.io"
        return {"loginServer": server, "sku": {"name": sku, "tier": sku}}
