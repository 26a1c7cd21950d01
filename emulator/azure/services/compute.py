"""Microsoft.Compute: proximity placement groups."""

from __future__ import annotations

from typing import ClassVar

from emulator.azure.errors import ArmError, invalid
from emulator.azure.services.base import POOL, Kind, NameRule, Request


class ProximityPlacementGroup(Kind):
    """Machines that Azure places close together."""

    token = "azure-native:compute:ProximityPlacementGroup"
    type = "Microsoft.Compute/proximityPlacementGroups"
    path = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Compute"
        "/proximityPlacementGroups/{proximityPlacementGroupName}"
    )
    rule = NameRule(
        r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
        "1-80 letters, digits, underscores, periods and hyphens, a letter or digit at the start",
    )
    replaces = frozenset({"location"})
    tracked = True
    immutable = ("zones", "intent.vmSizes")
    defaults: ClassVar = {"proximityPlacementGroupType": "Standard"}

    def check(self, request: Request) -> None:
        offered = request.facts.region_zones(request.location)
        for zone in request.body.get("zones") or []:
            if zone not in offered:
                raise invalid(f"{request.location} has no zone {zone}; it has {', '.join(offered) or 'none'}.")

    def check_delete(self, request: Request) -> None:
        for pool in request.state.of_type(POOL):
            if str(pool.properties.get("proximityPlacementGroupID", "")).lower() == request.id.lower():
                raise ArmError(
                    "OperationNotAllowed", f"Proximity Placement Group {request.id} is in use by {pool.id}.", status=409
                )
