"""Microsoft.Compute: proximity placement groups."""

from __future__ import annotations

from emulator.azure.errors import ArmError
from emulator.azure.services.base import Kind, NameRule, Request, merged
from emulator.azure.store import Properties


class ProximityPlacementGroup(Kind):
    """Machines that are to stand close together."""

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
    immutable = ("zones", "intent.vmSizes", "proximityPlacementGroupType")

    def check(self, request: Request) -> None:
        zones = request.body.get("zones") or []
        if len(zones) > 1:
            raise ArmError("InvalidParameter", f"A proximity placement group has at most one zone; given are {zones}.")
        if zones and not (request.body.get("intent") or {}).get("vmSizes"):
            raise ArmError("InvalidParameter", "zones can be specified only if intent.vmSizes is.")
        offered = request.facts.region_zones(request.location)
        for zone in zones:
            if zone not in offered:
                raise ArmError(
                    "InvalidParameter", f"{request.location} has no zone {zone}; it has {', '.join(offered)}."
                )

    def complete(self, request: Request) -> Properties:
        return merged(
            {"proximityPlacementGroupType": "Standard"},
            {
                **request.body,
                "location": request.location,
                "name": request.names["proximityPlacementGroupName"],
                "type": self.type,
            },
        )

    def check_delete(self, request: Request) -> None:
        for pool in request.state.of_type("Microsoft.ContainerService/managedClusters/agentPools"):
            if str(pool.properties.get("proximityPlacementGroupID", "")).lower() == request.id.lower():
                raise ArmError(
                    "OperationNotAllowed", f"Proximity Placement Group {request.id} is in use by {pool.id}.", status=409
                )
