"""Microsoft.Network: virtual networks, their subnets, network security groups."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from emulator.azure.errors import ArmError
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import Kind, NameRule, Request, etag, merged, require, stable_uuid
from emulator.azure.store import Properties, Record, State

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME = r"[A-Za-z0-9](?:[\w.-]{0,%d}\w)?"
_WORDS = "letters, digits, underscores, periods and hyphens; it starts with a letter or digit and ends with one or _"
_VIRTUAL_NETWORK = (
    "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Network/virtualNetworks"
    "/{virtualNetworkName}"
)


def network(text: Any, what: str) -> Network:
    """Read a range of addresses. Raises ArmError for anything else."""
    try:
        return ipaddress.ip_network(str(text))
    except ValueError as error:
        raise ArmError(
            "InvalidAddressPrefixFormat",
            f"Address prefix {text} of {what} is not formatted correctly ({error}). It should follow CIDR notation, "
            "for example 10.0.0.0/24.",
        ) from None


class VirtualNetwork(Kind):
    """A virtual network; subnets are given inline or as resources of their own."""

    token = "azure-native:network:VirtualNetwork"
    type = "Microsoft.Network/virtualNetworks"
    path = _VIRTUAL_NETWORK
    rule = NameRule(_NAME % 62, f"2-64 {_WORDS}")
    replaces = frozenset({"location"})
    tracked = True

    def check(self, request: Request) -> None:
        prefixes = self._prefixes(request)
        if not prefixes:
            raise ArmError(
                "InvalidRequestFormat",
                f"Virtual network {request.id} has no address space.",
                hint="Set addressSpace.addressPrefixes.",
            )
        inline = request.body.get("subnets")
        if inline is None:
            return
        names = {str(each.get("name", "")).lower() for each in inline}
        for existing in request.state.of_type(Subnet.type, request.id):
            if existing.name.lower() not in names:
                check_unused(request.state, existing)
        for index, each in enumerate(inline):
            if not each.get("name"):
                raise ArmError("InvalidRequestFormat", f"The subnet {index} of {request.id} has no name.")
            check_subnet(prefixes, str(each["name"]), each, [dict(other) for other in inline[:index]])

    def complete(self, request: Request) -> Properties:
        defaults = {
            "enableDdosProtection": False,
            "privateEndpointVNetPolicies": "Disabled",
            "virtualNetworkPeerings": [],
        }
        body = {key: value for key, value in request.body.items() if key != "subnets"}
        return merged(
            defaults,
            {
                **body,
                "etag": f'W/"{etag()}"',
                "location": request.location,
                "name": request.names["virtualNetworkName"],
                "provisioningState": "Succeeded",
                "resourceGuid": stable_uuid(request.id),
                "type": self.type,
            },
        )

    def on_started(self, request: Request, record: Record) -> None:
        inline = request.body.get("subnets")
        if inline is None:
            return
        kind, wanted = Subnet(), set()
        for each in inline:
            names = {**request.names, "subnetName": str(each["name"])}
            subnet_id = kind.id(request.facts, names)
            wanted.add(subnet_id.lower())
            before = request.state.get(subnet_id)
            inner = Request(request.facts, request.state, subnet_id, names, dict(each), before)
            request.state.put(Record(subnet_id, kind.token, kind.type, kind.complete(inner)))
        for existing in request.state.of_type(Subnet.type, record.id):
            if existing.id.lower() not in wanted:
                request.state.remove(existing.id)

    def to_response(self, facts: AzureFacts, state: State, record: Record) -> Properties:
        subnets = [{**each.properties, "id": each.id} for each in state.of_type(Subnet.type, record.id)]
        return {**record.properties, "subnets": subnets}

    def check_delete(self, request: Request) -> None:
        for subnet in request.state.of_type(Subnet.type, request.id):
            check_unused(request.state, subnet)

    def _prefixes(self, request: Request) -> list[Network]:
        space = request.kept("addressSpace") or {}
        return [network(each, request.id) for each in space.get("addressPrefixes") or []]


class Subnet(Kind):
    """A subnet of a virtual network."""

    token = "azure-native:network:Subnet"
    type = "Microsoft.Network/virtualNetworks/subnets"
    path = f"{_VIRTUAL_NETWORK}/subnets/{{subnetName}}"
    rule = NameRule(_NAME % 78, f"1-80 {_WORDS}")
    autoname = "copy"

    def check(self, request: Request) -> None:
        parent_id = request.id.rpartition("/subnets/")[0]
        parent = request.state.get(parent_id)
        if parent is None:
            raise ArmError(
                "ParentResourceNotFound",
                "Failed to perform 'write' on resource(s) of type 'virtualNetworks/subnets', because the parent "
                f"resource '{parent_id}' could not be found.",
                status=404,
            )
        others = [each for each in request.state.of_type(self.type, parent_id) if each.id.lower() != request.id.lower()]
        space = [network(each, parent_id) for each in parent.properties["addressSpace"]["addressPrefixes"]]
        name = request.names["subnetName"]
        check_subnet(space, name, request.body, [{**each.properties, "name": each.name} for each in others])
        group = (request.body.get("networkSecurityGroup") or {}).get("id")
        if group:
            require(request.state, group, request.id)

    def complete(self, request: Request) -> Properties:
        body = {key: value for key, value in request.body.items() if key not in ("id", "type")}
        return merged(
            {
                "delegations": [],
                "privateEndpointNetworkPolicies": "Disabled",
                "privateLinkServiceNetworkPolicies": "Enabled",
            },
            {
                **body,
                "etag": f'W/"{etag()}"',
                "name": request.names["subnetName"],
                "provisioningState": "Succeeded",
                "type": self.type,
            },
        )

    def check_delete(self, request: Request) -> None:
        if request.before is not None:
            check_unused(request.state, request.before)


class NetworkSecurityGroup(Kind):
    """A network security group, its rules inline."""

    token = "azure-native:network:NetworkSecurityGroup"
    type = "Microsoft.Network/networkSecurityGroups"
    path = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Network"
        "/networkSecurityGroups/{networkSecurityGroupName}"
    )
    rule = NameRule(_NAME % 78, f"1-80 {_WORDS}")
    tracked = True

    def check(self, request: Request) -> None:
        seen: dict[tuple[str, int], str] = {}
        for rule in request.body.get("securityRules") or []:
            key = (str(rule.get("direction")), int(rule.get("priority") or 0))
            if not 100 <= key[1] <= 4096:
                raise ArmError(
                    "SecurityRuleInvalidPriority",
                    f"Security rule has invalid Priority. Value provided: {key[1]} Allowed range 100-4096.",
                )
            if key in seen:
                raise ArmError(
                    "SecurityRuleConflict",
                    f"Security rule {rule.get('name')} conflicts with rule {seen[key]}. Rules cannot have the same "
                    "Priority and Direction.",
                )
            seen[key] = str(rule.get("name"))

    def complete(self, request: Request) -> Properties:
        rules = [{**each, "provisioningState": "Succeeded"} for each in request.body.get("securityRules") or []]
        return {
            **request.body,
            "etag": f'W/"{etag()}"',
            "location": request.location,
            "name": request.names["networkSecurityGroupName"],
            "provisioningState": "Succeeded",
            "resourceGuid": stable_uuid(request.id),
            "securityRules": rules,
            "type": self.type,
        }

    def check_delete(self, request: Request) -> None:
        for subnet in request.state.of_type(Subnet.type):
            group = (subnet.properties.get("networkSecurityGroup") or {}).get("id", "")
            if group.lower() == request.id.lower():
                raise ArmError(
                    "InUseNetworkSecurityGroupCannotBeDeleted",
                    f"Network security group {request.id} cannot be deleted because it is in use by the following "
                    f"resources: {subnet.id}.",
                )


def prefixes_of(subnet: Properties) -> list[Any]:
    """Return the address ranges of a subnet, as they are written."""
    found = subnet.get("addressPrefixes") or []
    return [*([subnet["addressPrefix"]] if subnet.get("addressPrefix") else []), *found]


def check_subnet(space: Sequence[Network], name: str, body: Properties, others: Sequence[Properties]) -> None:
    """Raise ArmError when a subnet does not fit into its virtual network's address space or beside the others."""
    ranges = [network(each, f"subnet {name}") for each in prefixes_of(body)]
    if not ranges:
        raise ArmError(
            "InvalidRequestFormat",
            f"Subnet '{name}' has no address range.",
            hint="Set addressPrefix, e.g. 10.0.1.0/24.",
        )
    for each in ranges:
        if not any(each.version == whole.version and each.subnet_of(whole) for whole in space):  # type: ignore[arg-type]
            raise ArmError(
                "NetcfgInvalidSubnet",
                f"Subnet '{name}' is not valid because its IP address range {each} is outside the address space "
                f"{', '.join(map(str, space))} of the virtual network.",
            )
        for other in others:
            taken = [network(prefix, "subnet") for prefix in prefixes_of(other)]
            if any(each.version == one.version and each.overlaps(one) for one in taken):
                raise ArmError(
                    "NetcfgSubnetRangesOverlap",
                    f"Subnet '{name}' is not valid because its IP address range overlaps with that of an existing "
                    f"subnet in the virtual network ('{other.get('name')}').",
                )


def check_unused(state: State, subnet: Record) -> None:
    """Raise ArmError when nodes live in a subnet."""
    for pool in state.of_type("Microsoft.ContainerService/managedClusters/agentPools"):
        if str(pool.properties.get("vnetSubnetID", "")).lower() == subnet.id.lower():
            raise ArmError(
                "InUseSubnetCannotBeDeleted",
                f"Subnet {subnet.name} is in use by {pool.id} and cannot be deleted. In order to delete the subnet, "
                "delete all the resources within the subnet.",
            )
