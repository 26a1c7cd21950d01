"""Microsoft.ContainerService: maintenance windows for AKS's upgrades."""

import re

from emulator.azure.errors import invalid
from emulator.azure.services.base import Kind, Request, parent_of

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")


class MaintenanceConfiguration(Kind):
    """A window of a managed cluster, deleted with the cluster.

    Source: learn.microsoft.com/azure/aks/planned-maintenance, for the names and for windows of 4 to 24 hours.
    """

    token = "azure-native:containerservice:MaintenanceConfiguration"

    def check(self, request: Request) -> None:
        parent_of(request, "maintenanceConfigurations")
        window = request.body["maintenanceWindow"]
        if not 4 <= window["durationHours"] <= 24:
            raise invalid(f"durationHours is {window['durationHours']}; it has to be from 4 to 24.")
        if not _TIME.fullmatch(window["startTime"]) or not _OFFSET.fullmatch(window.get("utcOffset", "+00:00")):
            raise invalid("startTime and utcOffset have the forms 02:00 and +01:00.")
