"""Microsoft.ContainerRegistry: registries."""

from __future__ import annotations

from typing import ClassVar

from emulator.azure.errors import ArmError
from emulator.azure.services.base import Kind, NameRule, Request
from emulator.azure.store import Properties


class Registry(Kind):
    """A container registry. Its name is unique in all of Azure."""

    token = "azure-native:containerregistry:Registry"
    type = "Microsoft.ContainerRegistry/registries"
    path = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.ContainerRegistry"
        "/registries/{registryName}"
    )
    rule = NameRule(r"[A-Za-z0-9]{5,50}", "5-50 letters and digits")
    replaces = frozenset({"location"})
    tracked = True
    defaults: ClassVar = {"adminUserEnabled": False, "provisioningState": "Succeeded"}

    def check(self, request: Request) -> None:
        name = request.names["registryName"].lower()
        here = [each.name.lower() for each in request.others(self.type)]
        if request.creates and name in (*here, *request.facts.taken_registries):
            raise ArmError(
                "AlreadyInUse",
                f"The registry DNS name {name}.azurecr.io is already in use.",
                status=409,
                hint="Names of registries are unique across Azure: choose another.",
            )

    def computed(self, request: Request) -> Properties:
        sku = request.body["sku"]["name"]
        server = f"{request.names['registryName'].lower()}.azurecr.io"
        return {"loginServer": server, "sku": {"name": sku, "tier": sku}}
