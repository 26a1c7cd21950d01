"""Security groups, their rules, and groups of addresses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from emulator.openstack_provider.call import GONE, Call, given, stated
from emulator.openstack_provider.errors import ApiError
from emulator.openstack_provider.kinds.base import Kind, Values, new_tags, newest, tags_of


class SecGroup(Kind):
    """A security group. Neutron gives it two rules that let everything out; `deleteDefaultRules` takes them away."""

    token = "openstack:networking/secGroup:SecGroup"

    def create(self, call: Call, inputs: Values) -> None:
        body = given(
            name=inputs["name"], description=inputs.get("description"), tenant_id=inputs.get("tenantId")
        ) | stated(inputs, stateful="stateful")
        made = call.network.post("/security-groups", {"security_group": body})["security_group"]
        call.made(made["id"])
        if inputs.get("deleteDefaultRules"):
            for rule in call.network.get(f"/security-groups/{made['id']}")["security_group"]["security_group_rules"]:
                call.network.delete(f"/security-group-rules/{rule['id']}")
        call.identifier = made["id"]
        if inputs.get("tags"):
            call.network.put(f"/security-groups/{made['id']}/tags", {"tags": inputs["tags"]})

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        told = {name: inputs.get(name) for name in ("name", "description")}
        return newest(call.network.get("/security-groups", **told)["security_groups"], since)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.network.find(f"/security-groups/{identifier}")
        if found is None:
            return None
        group = found["security_group"]
        return {
            "name": group["name"],
            "description": group["description"],
            "tenantId": group["tenant_id"],
            "stateful": group.get("stateful", True),
            **tags_of(group.get("tags", []), state),
        }

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        path = f"/security-groups/{call.identifier}"
        body = {name: after.get(name) for name in ("name", "description", "stateful") if name in changed}
        if body:
            call.network.put(path, {"security_group": body})
        if "tags" in changed:
            call.network.put(f"{path}/tags", {"tags": new_tags(before, after)})

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        _delete_when_unused(call, f"/security-groups/{identifier}", f"the security group {identifier}")


class SecGroupRule(Kind):
    """A rule of a security group. Every property replaces it."""

    token = "openstack:networking/secGroupRule:SecGroupRule"

    def create(self, call: Call, inputs: Values) -> None:
        body = _asked(inputs)
        made = call.network.post("/security-group-rules", {"security_group_rule": body})["security_group_rule"]
        call.identifier = made["id"]
        call.made(call.identifier)

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        query = {"security_group_id": inputs["securityGroupId"], "direction": inputs["direction"]}
        rules = call.network.get("/security-group-rules", **query)["security_group_rules"]
        return newest([each for each in rules if _let_in(each) == _let_in(_asked(inputs))], since)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.network.find(f"/security-group-rules/{identifier}")
        if found is None:
            return None
        rule = found["security_group_rule"]
        return {
            "description": rule.get("description") or "",
            "direction": rule["direction"],
            "ethertype": rule["ethertype"],
            "portRangeMax": rule["port_range_max"] or 0,
            "portRangeMin": rule["port_range_min"] or 0,
            "protocol": rule["protocol"] or "",
            "remoteAddressGroupId": rule.get("remote_address_group_id") or "",
            "remoteGroupId": rule["remote_group_id"] or "",
            "remoteIpPrefix": rule["remote_ip_prefix"] or "",
            "securityGroupId": rule["security_group_id"],
            "tenantId": rule["tenant_id"],
        }

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        path = f"/security-group-rules/{identifier}"
        call.network.delete(path)
        call.wait(f"the rule {identifier}", lambda: "ACTIVE" if call.network.find(path) else GONE, [GONE])


class AddressGroup(Kind):
    """Addresses that rules name as one. They come and go in place."""

    token = "openstack:networking/addressGroupV2:AddressGroupV2"

    def create(self, call: Call, inputs: Values) -> None:
        body = given(
            name=inputs.get("name"),
            description=inputs.get("description"),
            project_id=inputs.get("projectId"),
            addresses=inputs["addresses"],
        )
        call.identifier = call.network.post("/address-groups", {"address_group": body})["address_group"]["id"]
        call.made(call.identifier)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.network.find(f"/address-groups/{identifier}")
        if found is None:
            return None
        group = found["address_group"]
        return {
            "name": group["name"],
            "description": group["description"],
            "projectId": group["project_id"],
            "addresses": sorted(group["addresses"]),
        }

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        path = f"/address-groups/{call.identifier}"
        body = {name: after.get(name) or "" for name in ("name", "description") if name in changed}
        if body:
            call.network.put(path, {"address_group": body})
        old, new = set(before.get("addresses") or ()), set(after["addresses"])
        for action, addresses in (("remove_addresses", old - new), ("add_addresses", new - old)):
            if addresses:
                call.network.put(f"{path}/{action}", {"addresses": sorted(addresses)})

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        _delete_when_unused(call, f"/address-groups/{identifier}", f"the address group {identifier}")


def _asked(inputs: Values) -> dict[str, Any]:
    """Return the rule as Neutron is asked for it."""
    return given(
        description=inputs.get("description"),
        direction=inputs["direction"],
        ethertype=inputs["ethertype"],
        port_range_max=inputs.get("portRangeMax") or None,
        port_range_min=inputs.get("portRangeMin") or None,
        protocol=inputs.get("protocol"),
        remote_address_group_id=inputs.get("remoteAddressGroupId"),
        remote_group_id=inputs.get("remoteGroupId"),
        remote_ip_prefix=inputs.get("remoteIpPrefix"),
        security_group_id=inputs["securityGroupId"],
        tenant_id=inputs.get("tenantId"),
    )


def _let_in(rule: Values) -> tuple[Any, ...]:
    """Return by what Neutron tells rules of a group apart (neutron/db/securitygroups_db.py, `_rule_to_key`)."""
    ranges = ("ethertype", "protocol", "port_range_min", "port_range_max")
    return tuple(rule.get(name) for name in (*ranges, "remote_ip_prefix", "remote_group_id", "remote_address_group_id"))


def _delete_when_unused(call: Call, path: str, what: str) -> None:
    def status() -> str:
        try:
            call.network.delete(path)
        except ApiError as error:
            if error.status != 409:
                raise
            return "in use"
        return "ACTIVE" if call.network.find(path) else GONE

    call.wait(what, status, [GONE])
