"""Microsoft.Compute: proximity placement groups."""

from emulator.azure.errors import invalid, refused
from emulator.azure.services.base import POOL, Kind, Request


class ProximityPlacementGroup(Kind):
    """Machines that Azure places close together."""

    token = "azure-native:compute:ProximityPlacementGroup"

    def check(self, request: Request) -> None:
        offered = request.facts.region_zones(request.location)
        for zone in request.body.get("zones") or []:
            if zone not in offered:
                raise invalid(f"{request.location} has no zone {zone}; it has {', '.join(offered) or 'none'}.")

    def check_delete(self, request: Request) -> None:
        for pool in request.state.of_type(POOL):
            if str(pool.properties.get("proximityPlacementGroupID", "")).lower() == request.id.lower():
                raise refused("ProximityPlacementGroupInUse", id=request.id, user=pool.id)
