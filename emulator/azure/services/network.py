"""Microsoft.Network: virtual networks, their subnets, network security groups."""

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from emulator.azure.errors import refused
from emulator.azure.services.base import POOL, Kind, Request, parent_of, require
from emulator.azure.store import Properties, Record, State


def network(text: Any, what: str) -> IPv4Network:
    """Return a range of addresses. Raises ArmError for an invalid one."""
    try:
        return IPv4Network(str(text))
    except ValueError as error:
        raise refused("InvalidAddressPrefixFormat", text=text, what=what, error=error) from None


class VirtualNetwork(Kind):
    """A virtual network. Its subnets are separate resources; an update by the provider keeps them."""

    token = "azure-native:network:VirtualNetwork"

    def check(self, request: Request) -> None:
        space = _space(request.body, request.id)
        for subnet in request.state.of_type(Subnet.type, request.id):
            check_subnet(space, subnet.name, subnet.properties, ())

    def to_response(self, state: State, record: Record) -> Properties:
        subnets = [{**each.properties, "id": each.id} for each in state.of_type(Subnet.type, record.id)]
        return {**record.properties, "subnets": subnets}

    def check_delete(self, request: Request) -> None:
        for subnet in request.state.of_type(Subnet.type, request.id):
            check_unused(request.state, subnet)


class Subnet(Kind):
    """A subnet of a virtual network."""

    token = "azure-native:network:Subnet"

    def check(self, request: Request) -> None:
        parent = parent_of(request, "subnets")
        space = _space(parent.properties, parent.id)
        check_subnet(space, request.names["subnetName"], request.body, request.others(self.type, parent.id))
        group = (request.body.get("networkSecurityGroup") or {}).get("id")
        if group:
            require(request.state, group, request.id)

    def check_delete(self, request: Request) -> None:
        if request.before is not None:
            check_unused(request.state, request.before)


class NetworkSecurityGroup(Kind):
    """A network security group with Azure's default rules."""

    token = "azure-native:network:NetworkSecurityGroup"

    def check_delete(self, request: Request) -> None:
        for subnet in request.state.of_type(Subnet.type):
            group = (subnet.properties.get("networkSecurityGroup") or {}).get("id", "")
            if group.lower() == request.id.lower():
                raise refused("InUseNetworkSecurityGroupCannotBeDeleted", id=request.id, user=subnet.id)


def _space(properties: Properties, what: str) -> list[IPv4Network]:
    return [network(each, what) for each in (properties.get("addressSpace") or {}).get("addressPrefixes") or []]


def check_subnet(space: Sequence[IPv4Network], name: str, body: Properties, others: Sequence[Record]) -> None:
    """Raise ArmError if a subnet is outside its virtual network's address space or overlaps another subnet."""
    own = network(body.get("addressPrefix"), f"subnet {name}")
    if not any(own.subnet_of(whole) for whole in space):
        raise refused("NetcfgInvalidSubnet", name=name, range=own, space=", ".join(map(str, space)))
    for other in others:
        if own.overlaps(network(other.properties["addressPrefix"], other.id)):
            raise refused("NetcfgSubnetRangesOverlap", name=name, other=other.name)


def check_unused(state: State, subnet: Record) -> None:
    """Raise ArmError if nodes use a subnet."""
    for pool in state.of_type(POOL):
        if str(pool.properties.get("vnetSubnetID", "")).lower() == subnet.id.lower():
            raise refused("InUseSubnetCannotBeDeleted", name=subnet.name, user=pool.id)
