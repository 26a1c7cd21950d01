"""Microsoft.ContainerRegistry: registries."""

from __future__ import annotations

from emulator.azure.errors import ArmError
from emulator.azure.services.base import Kind, NameRule, Request, merged, now, user_identities
from emulator.azure.store import Properties

_PREMIUM_ONLY = ("dataEndpointEnabled", "networkRuleSet", "encryption")


class Registry(Kind):
    """A container registry, whose name is unique in the world."""

    token = "azure-native:containerregistry:Registry"
    type = "Microsoft.ContainerRegistry/registries"
    path = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.ContainerRegistry"
        "/registries/{registryName}"
    )
    rule = NameRule(r"[A-Za-z0-9]{5,50}", "5-50 letters and digits")
    replaces = frozenset({"location"})
    tracked = True

    def check(self, request: Request) -> None:
        name = request.names["registryName"]
        if request.creates and _taken(request, name):
            raise ArmError(
                "AlreadyInUse",
                f"The registry DNS name {name.lower()}.azurecr.io is already in use. You can check if the name is "
                "already claimed using following API: https://docs.microsoft.com/en-us/rest/api/containerregistry/"
                "registries/checknameavailability",
                status=409,
                hint="Names of registries are unique across Azure: choose another.",
            )
        sku = (request.kept("sku") or {}).get("name", "")
        if sku != "Premium":
            asked = [key for key in _PREMIUM_ONLY if request.body.get(key)]
            if request.body.get("publicNetworkAccess") == "Disabled":
                asked.append("publicNetworkAccess: Disabled")
            if request.body.get("zoneRedundancy") == "Enabled":
                asked.append("zoneRedundancy: Enabled")
            if asked:
                raise ArmError(
                    "SkuNotSupported",
                    f"The property '{asked[0]}' is not supported for the registry SKU '{sku}'. "
                    "It is supported for 'Premium' SKU.",
                )

    def complete(self, request: Request) -> Properties:
        name = request.names["registryName"]
        before = request.before.properties if request.before else {}
        defaults = {
            "adminUserEnabled": False,
            "anonymousPullEnabled": False,
            "dataEndpointEnabled": False,
            "dataEndpointHostNames": [],
            "encryption": {"status": "disabled"},
            "networkRuleBypassOptions": "AzureServices",
            "policies": {
                "quarantinePolicy": {"status": "disabled"},
                "retentionPolicy": {"days": 7, "status": "disabled"},
                "trustPolicy": {"status": "disabled", "type": "Notary"},
            },
            "privateEndpointConnections": [],
            "publicNetworkAccess": "Enabled",
            "zoneRedundancy": "Disabled",
        }
        sku = request.kept("sku")["name"]
        identity = user_identities(request)
        return merged(
            defaults,
            {
                **request.body,
                **({"identity": identity} if identity else {}),
                "creationDate": before.get("creationDate", now()),
                "location": request.location,
                "loginServer": f"{name.lower()}.azurecr.io",
                "name": name,
                "provisioningState": "Succeeded",
                "sku": {"name": sku, "tier": sku},
                "type": self.type,
            },
        )


def _taken(request: Request, name: str) -> bool:
    here = (each.name.lower() for each in request.state.of_type(Registry.type))
    return name.lower() in here or request.facts.taken("registries", name)
