"""Microsoft.Network: virtual networks, their subnets, network security groups."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from emulator.azure.errors import ArmError, parent_not_found
from emulator.azure.services.base import POOL, Kind, NameRule, Request, require
from emulator.azure.store import Properties, Record, State

_NAME = r"[A-Za-z0-9](?:[\w.-]{0,%d}\w)?"
_WORDS = "letters, digits, underscores, periods and hyphens; it starts with a letter or digit and ends with one or _"
_NETWORK = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Network"
_SUCCEEDED = {"provisioningState": "Succeeded"}


def network(text: Any, what: str) -> IPv4Network:
    """Return a range of addresses. Raises ArmError for an invalid one."""
    try:
        return IPv4Network(str(text))
    except ValueError as error:
        raise ArmError(
            "InvalidAddressPrefixFormat",
            f"Address prefix {text} of {what} is not formatted correctly ({error}). It should follow CIDR notation, "
            "for example 10.0.0.0/24.",
        ) from None


class VirtualNetwork(Kind):
    """A virtual network. Its subnets are separate resources; an update by the provider keeps them."""

    token = "azure-native:network:VirtualNetwork"
    type = "Microsoft.Network/virtualNetworks"
    path = f"{_NETWORK}/virtualNetworks/{{virtualNetworkName}}"
    rule = NameRule(_NAME % 62, f"2-64 {_WORDS}")
    replaces = frozenset({"location"})
    tracked = True
    defaults = _SUCCEEDED

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
    type = "Microsoft.Network/virtualNetworks/subnets"
    path = f"{VirtualNetwork.path}/subnets/{{subnetName}}"
    rule = NameRule(_NAME % 78, f"1-80 {_WORDS}")
    defaults = _SUCCEEDED

    def check(self, request: Request) -> None:
        parent_id = request.id.rpartition("/subnets/")[0]
        parent = request.state.get(parent_id)
        if parent is None:
            raise parent_not_found(parent_id)
        space = _space(parent.properties, parent_id)
        check_subnet(space, request.names["subnetName"], request.body, request.others(self.type, parent_id))
        group = (request.body.get("networkSecurityGroup") or {}).get("id")
        if group:
            require(request.state, group, request.id)

    def check_delete(self, request: Request) -> None:
        if request.before is not None:
            check_unused(request.state, request.before)


class NetworkSecurityGroup(Kind):
    """A network security group with Azure's default rules."""

    token = "azure-native:network:NetworkSecurityGroup"
    type = "Microsoft.Network/networkSecurityGroups"
    path = f"{_NETWORK}/networkSecurityGroups/{{networkSecurityGroupName}}"
    rule = NameRule(_NAME % 78, f"1-80 {_WORDS}")
    tracked = True
    defaults = _SUCCEEDED

    def check_delete(self, request: Request) -> None:
        for subnet in request.state.of_type(Subnet.type):
            group = (subnet.properties.get("networkSecurityGroup") or {}).get("id", "")
            if group.lower() == request.id.lower():
                raise ArmError(
                    "InUseNetworkSecurityGroupCannotBeDeleted",
                    f"Network security group {request.id} cannot be deleted: it is in use by {subnet.id}.",
                )


def _space(properties: Properties, what: str) -> list[IPv4Network]:
    return [network(each, what) for each in (properties.get("addressSpace") or {}).get("addressPrefixes") or []]


def check_subnet(space: Sequence[IPv4Network], name: str, body: Properties, others: Sequence[Record]) -> None:
    """Raise ArmError if a subnet is outside its virtual network's address space or overlaps another subnet."""
    own = network(body.get("addressPrefix"), f"subnet {name}")
    if not any(own.subnet_of(whole) for whole in space):
        raise ArmError(
            "NetcfgInvalidSubnet",
            f"Subnet '{name}' is not valid because its IP address range {own} is outside the address space "
            f"{', '.join(map(str, space))} of the virtual network.",
        )
    for other in others:
        if own.overlaps(network(other.properties["addressPrefix"], other.id)):
            raise ArmError(
                "NetcfgSubnetRangesOverlap",
                f"Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet "
                f"in the virtual network ('{other.name}').",
            )


def check_unused(state: State, subnet: Record) -> None:
    """Raise ArmError if nodes use a subnet."""
    for pool in state.of_type(POOL):
        if str(pool.properties.get("vnetSubnetID", "")).lower() == subnet.id.lower():
            raise ArmError(
                "InUseSubnetCannotBeDeleted",
                f"Subnet {subnet.name} is in use by {pool.id} and cannot be deleted.",
            )
