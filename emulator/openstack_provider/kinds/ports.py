"""Ports, and floating IPs that lead to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from emulator.openstack_provider.call import GONE, Call, given, stated
from emulator.openstack_provider.errors import ApiError
from emulator.openstack_provider.kinds.base import Kind, Values, new_tags, newest, tags_of
from emulator.plugin.errors import ProviderError

_READY: Final = ("ACTIVE", "DOWN")


class Port(Kind):
    """A port of a network. What is read says nothing of `securityGroupIds` and `fixedIps`: no drift of them is seen.

    `allSecurityGroupIds` and `allFixedIps` have what there is.
    """

    token = "openstack:networking/port:Port"

    def create(self, call: Call, inputs: Values) -> None:
        _judge(inputs)
        body = given(
            name=inputs.get("name"),
            description=inputs.get("description"),
            network_id=inputs["networkId"],
            mac_address=inputs.get("macAddress"),
            tenant_id=inputs.get("tenantId"),
            device_owner=inputs.get("deviceOwner"),
            device_id=inputs.get("deviceId"),
            security_groups=inputs.get("securityGroupIds"),
            fixed_ips=_fixed_ips(inputs),
            allowed_address_pairs=_pairs(inputs),
            extra_dhcp_opts=_options(inputs),
            dns_name=inputs.get("dnsName"),
            qos_policy_id=inputs.get("qosPolicyId"),
        )
        body |= stated(inputs, admin_state_up="adminStateUp", port_security_enabled="portSecurityEnabled")
        body |= _binding(inputs.get("binding") or {}, ("hostId", "profile", "vnicType"))
        if inputs.get("noSecurityGroups"):
            body["security_groups"] = []
        if inputs.get("noFixedIp"):
            body["fixed_ips"] = []
        body |= inputs.get("valueSpecs") or {}
        port = call.network.post("/ports", {"port": body})["port"]["id"]
        call.made(port)
        call.wait(f"the port {port}", lambda: _status(call, f"/ports/{port}", "port"), _READY)
        call.identifier = port
        if inputs.get("tags"):
            call.network.put(f"/ports/{port}/tags", {"tags": inputs["tags"]})

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        told = {name: inputs.get(name) for name in ("name", "description")}
        return newest(call.network.get("/ports", network_id=inputs["networkId"], **told)["ports"], since)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.network.find(f"/ports/{identifier}")
        if found is None:
            return None
        port = found["port"]
        return {
            "name": port["name"],
            "description": port["description"],
            "adminStateUp": port["admin_state_up"],
            "networkId": port["network_id"],
            "macAddress": port["mac_address"],
            "tenantId": port["tenant_id"],
            "deviceOwner": port["device_owner"],
            "deviceId": port["device_id"],
            "allFixedIps": [each["ip_address"] for each in port["fixed_ips"]],
            "allSecurityGroupIds": sorted(port["security_groups"]),
            "allowedAddressPairs": [
                {"ipAddress": each["ip_address"]}
                | ({"macAddress": each["mac_address"]} if each["mac_address"] != port["mac_address"] else {})
                for each in port.get("allowed_address_pairs", [])
            ],
            "extraDhcpOptions": [
                {"name": each["opt_name"], "value": each["opt_value"], "ipVersion": each["ip_version"]}
                for each in port.get("extra_dhcp_opts", [])
            ],
            "portSecurityEnabled": port.get("port_security_enabled", False),
            "binding": {
                "hostId": port.get("binding:host_id") or "",
                "profile": json.dumps(port.get("binding:profile") or {}, separators=(",", ":"), sort_keys=True),
                "vifDetails": {
                    name: json.dumps(value) if isinstance(value, dict | list | bool) else str(value)
                    for name, value in (port.get("binding:vif_details") or {}).items()
                },
                "vifType": port.get("binding:vif_type") or "",
                "vnicType": port.get("binding:vnic_type") or "",
            },
            "dnsName": port.get("dns_name") or "",
            "dnsAssignments": port.get("dns_assignment") or [],
            "qosPolicyId": port.get("qos_policy_id") or "",
            **tags_of(port.get("tags", []), state),
        }

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        _judge(after)
        names = {
            "name": "name",
            "description": "description",
            "dnsName": "dns_name",
            "qosPolicyId": "qos_policy_id",
        }
        body: dict[str, Any] = {names[name]: after.get(name) or "" for name in names if name in changed}
        flags = {"adminStateUp": "admin_state_up", "portSecurityEnabled": "port_security_enabled"}
        body |= {flags[name]: bool(after.get(name)) for name in flags if name in changed}
        if "allowedAddressPairs" in changed:
            body["allowed_address_pairs"] = _pairs(after)
        if "noSecurityGroups" in changed and after.get("noSecurityGroups"):
            body["security_groups"] = []
        if "securityGroupIds" in changed:
            body["security_groups"] = after.get("securityGroupIds") or []
        if changed & {"fixedIps", "noFixedIp"} and (after.get("noFixedIp") or _fixed_ips(after)):
            body["fixed_ips"] = [] if after.get("noFixedIp") else _fixed_ips(after)
        if "extraDhcpOptions" in changed:
            kept = {each["name"] for each in after.get("extraDhcpOptions") or ()}
            gone = [each["name"] for each in before.get("extraDhcpOptions") or () if each["name"] not in kept]
            body["extra_dhcp_opts"] = _options(after) + [{"opt_name": each, "opt_value": None} for each in gone]
        if "binding" in changed:
            old, new = before.get("binding") or {}, after.get("binding") or {}
            body |= _binding(
                new, [name for name in ("hostId", "profile", "vnicType") if old.get(name) != new.get(name)]
            )
        if body:
            call.network.put(f"/ports/{call.identifier}", {"port": body})
        if "tags" in changed:
            call.network.put(f"/ports/{call.identifier}/tags", {"tags": new_tags(before, after)})

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        path = f"/ports/{identifier}"
        call.network.delete(path)
        # In its other status a port of upstream fails to be deleted; here the deletion is waited for in both.
        call.wait(f"the port {identifier}", lambda: _status(call, path, "port"), [GONE])


class FloatingIp(Kind):
    """An address of an external network, the pool, which is named by its name."""

    token = "openstack:networking/floatingIp:FloatingIp"

    def create(self, call: Call, inputs: Values) -> None:
        subnets = [inputs["subnetId"]] if inputs.get("subnetId") else list(inputs.get("subnetIds") or [None])
        body = given(
            floating_network_id=_network(call, inputs["pool"]),
            description=inputs.get("description"),
            floating_ip_address=inputs.get("address"),
            port_id=inputs.get("portId"),
            tenant_id=inputs.get("tenantId"),
            fixed_ip_address=inputs.get("fixedIp"),
            dns_name=inputs.get("dnsName"),
            dns_domain=inputs.get("dnsDomain"),
        )
        body |= inputs.get("valueSpecs") or {}
        floating_ip, subnet = _first_free(call, body, subnets, retried=bool(inputs.get("subnetIds")))
        call.made(floating_ip)
        path = f"/floatingips/{floating_ip}"
        call.wait(f"the floating IP {floating_ip}", lambda: _status(call, path, "floatingip"), _READY)
        call.identifier = floating_ip
        call.kept = {"subnetId": subnet} if subnet else {}
        if inputs.get("tags"):
            call.network.put(f"{path}/tags", {"tags": inputs["tags"]})

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        query = {"floating_network_id": _network(call, inputs["pool"]), "description": inputs.get("description")}
        return newest(call.network.get("/floatingips", **query)["floatingips"], since)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.network.find(f"/floatingips/{identifier}")
        if found is None:
            return None
        address = found["floatingip"]
        pool = call.network.get(f"/networks/{address['floating_network_id']}")["network"]["name"]
        return {
            "description": address["description"],
            "address": address["floating_ip_address"],
            "portId": address["port_id"] or "",
            "fixedIp": address["fixed_ip_address"] or "",
            "tenantId": address["tenant_id"],
            "dnsName": address.get("dns_name") or "",
            "dnsDomain": address.get("dns_domain") or "",
            "pool": pool,
            **tags_of(address.get("tags", []), state),
        }

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        body: dict[str, Any] = {}
        if "description" in changed:
            body["description"] = after.get("description") or ""
        if changed & {"portId", "fixedIp"}:
            body["port_id"] = after.get("portId") or before.get("portId") or None
        if "fixedIp" in changed:
            body["fixed_ip_address"] = after.get("fixedIp")
        path = f"/floatingips/{call.identifier}"
        if body:
            call.network.put(path, {"floatingip": body})
        if "tags" in changed:
            call.network.put(f"{path}/tags", {"tags": new_tags(before, after)})

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        path = f"/floatingips/{identifier}"
        call.network.delete(path)
        call.wait(f"the floating IP {identifier}", lambda: _status(call, path, "floatingip"), [GONE], _READY)


class FloatingIpAssociate(Kind):
    """A floating IP that leads to a port. Its ID is that of the floating IP, which is found by its address."""

    token = "openstack:networking/floatingIpAssociate:FloatingIpAssociate"

    def create(self, call: Call, inputs: Values) -> None:
        address = inputs["floatingIp"]
        found = call.network.get("/floatingips", floating_ip_address=address)["floatingips"]
        if len(found) != 1:
            raise ProviderError(f"there are {len(found)} floating IPs with the address {address}; one is expected")
        body = given(port_id=inputs["portId"], fixed_ip_address=inputs.get("fixedIp"))
        call.network.put(f"/floatingips/{found[0]['id']}", {"floatingip": body})
        call.identifier = found[0]["id"]
        call.made(call.identifier)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.network.find(f"/floatingips/{identifier}")
        if found is None:
            return None
        address = found["floatingip"]
        return {
            "floatingIp": address["floating_ip_address"],
            "portId": address["port_id"] or "",
            "fixedIp": address["fixed_ip_address"] or "",
        }

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        body = given(port_id=after["portId"], fixed_ip_address=after.get("fixedIp") if "fixedIp" in changed else None)
        call.network.put(f"/floatingips/{call.identifier}", {"floatingip": body})

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        call.network.put(f"/floatingips/{identifier}", {"floatingip": {"port_id": None}})


def _status(call: Call, path: str, name: str) -> str:
    found = call.network.find(path)
    return GONE if found is None else str(found[name]["status"])


def _judge(inputs: Values) -> None:
    if inputs.get("noSecurityGroups") and inputs.get("securityGroupIds"):
        raise ProviderError("a port has either noSecurityGroups or securityGroupIds, not both")


def _network(call: Call, pool: str) -> str:
    found = call.network.get("/networks", name=pool)["networks"]
    if len(found) != 1:
        raise ProviderError(f"{len(found)} networks are named {pool}; the pool of a floating IP is one")
    return str(found[0]["id"])


def _first_free(call: Call, body: Mapping[str, Any], subnets: list[Any], *, retried: bool) -> tuple[str, Any]:
    """Take an address of the first subnet that has one left. retried: another subnet is asked where one is full."""
    for subnet in subnets:
        request = {"floatingip": {**body, **given(subnet_id=subnet)}}
        try:
            return str(call.network.post("/floatingips", request)["floatingip"]["id"]), subnet
        except ApiError as error:
            full = error.status == 404 or (
                error.status in (400, 409) and ("exhausted" in error.message or "No more IP" in error.message)
            )
            if not (retried and full) or subnet == subnets[-1]:
                raise
    raise AssertionError("there is always a subnet, if only None")


def _fixed_ips(inputs: Values) -> list[dict[str, str]]:
    found = [
        given(subnet_id=each.get("subnetId"), ip_address=each.get("ipAddress")) for each in inputs.get("fixedIps") or ()
    ]
    return [each for each in found if each]


def _pairs(inputs: Values) -> list[dict[str, str]]:
    return [
        given(ip_address=each["ipAddress"], mac_address=each.get("macAddress"))
        for each in inputs.get("allowedAddressPairs") or ()
    ]


def _options(inputs: Values) -> list[dict[str, Any]]:
    return [
        {"opt_name": each["name"], "opt_value": each["value"], "ip_version": each.get("ipVersion", 4)}
        for each in inputs.get("extraDhcpOptions") or ()
    ]


def _binding(binding: Values, names: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        value = binding.get(name)
        if name == "profile":
            value = json.loads(value) if value else None
        if value:
            found[
                {"hostId": "binding:host_id", "profile": "binding:profile", "vnicType": "binding:vnic_type"}[name]
            ] = value
    return found
