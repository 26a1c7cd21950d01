"""Servers, called instances."""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from emulator.openstack_provider.call import GONE, Call, given
from emulator.openstack_provider.kinds.base import Kind, Values, new_tags, newest, tags_of
from emulator.plugin.diffing import Change
from emulator.plugin.errors import ProviderError
from emulator.plugin.paths import Path

NETWORK_MODE: Final = "2.37"
TAGGED: Final = "2.52"
VOLUME_TYPE: Final = "2.67"
MULTIATTACH: Final = "2.60"
HYPERVISOR: Final = "2.74"
READ_TAGS: Final = "2.26"
"""Microversions, as upstream asks for them (openstack/compute_instance_v2.go)."""

NO_IMAGE: Final = "Attempt to boot from volume - no image supplied"
_POWER: Final = frozenset(
    {"active", "shutoff", "error", "migrating", "shelved_offloaded", "shelved", "build", "paused"}
)
_RUNNING: Final = ("ACTIVE", "SHUTOFF")


class Instance(Kind):
    """A server.

    A change of its flavor is a resize that is confirmed at once, a change of its image a rebuild on the same address
    and ports, which wipes the root disk. What is given as `userData`, and a key pair, replace it.
    """

    token = "openstack:compute/instance:Instance"

    def judged(self, changes: Mapping[Path, Change], state: Values, news: Values) -> dict[Path, Change]:
        found = {}
        power, zone = state.get("powerState"), news.get("availabilityZone")
        for path, change in changes.items():
            name = path[0]
            if name == "powerState" and power in ("error", "migrating"):
                continue
            if name == "availabilityZone" and isinstance(zone, str) and zone.split(":")[0] == state.get(name):
                continue
            if name in ("networks", "securityGroups") and power == "build":
                continue
            # Nova cannot resize from a flavor that is deleted.
            lost = name in ("flavorId", "flavorName") and state.get(str(name)) == ""
            found[path] = replace(change, replaces=change.replaces or lost)
        return found

    def create(self, call: Call, inputs: Values) -> None:
        devices = [_device(each) for each in inputs.get("blockDevices") or ()]
        image = _image(call, inputs)
        tags, hints = inputs.get("tags"), _hints(inputs)
        body = given(
            name=inputs["name"],
            imageRef=image,
            flavorRef=_flavor(call, inputs),
            security_groups=[{"name": each} for each in inputs.get("securityGroups") or ()],
            availability_zone=inputs.get("availabilityZone") or inputs.get("availabilityZoneHints"),
            networks=_networks(call, inputs),
            hypervisor_hostname=inputs.get("hypervisorHostname"),
            metadata=inputs.get("metadata"),
            adminPass=inputs.get("adminPass"),
            user_data=_encoded(inputs.get("userData")),
            personality=_personality(inputs),
            tags=tags,
            block_device_mapping_v2=devices,
            key_name=inputs.get("keyPair"),
        )
        body["config_drive"] = bool(inputs.get("configDrive"))
        request = {"server": body, **({"os:scheduler_hints": hints} if hints else {})}
        call.identifier = call.compute.post("/servers", request, _version(inputs))["server"]["id"]
        call.made(call.identifier)
        _wait(call, ["ACTIVE"], ["BUILD"])
        if inputs.get("powerState", "").lower() == "shutoff":
            _act(call, {"os-stop": None}, ["SHUTOFF"])

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        # Nova reads the name as a regular expression.
        servers = call.compute.get("/servers/detail", name=f"^{re.escape(inputs['name'])}$")["servers"]
        metadata = inputs.get("metadata") or {}
        alike = [each for each in servers if (each["name"], each["metadata"]) == (inputs["name"], metadata)]
        return newest(alike, since, "created")

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.compute.find(f"/servers/{identifier}")
        if found is None:
            return None
        server = found["server"]
        power = str(server["status"]).lower()
        if power not in _POWER:
            raise ProviderError(f"the server {identifier} is in status {server['status']}, which is no power state")
        networks = _read_networks(call, server, state)
        tags = call.compute.get(f"/servers/{identifier}/tags", READ_TAGS)["tags"]
        first, sixth = _access(networks)
        return {
            "name": server["name"],
            "created": server["created"],
            "updated": server["updated"],
            "networks": networks,
            "accessIpV4": first or server.get("accessIPv4") or "",
            "accessIpV6": sixth or server.get("accessIPv6") or "",
            "allMetadata": server["metadata"],
            "securityGroups": sorted({each["name"] for each in server.get("security_groups", [])}),
            "keyPair": server["key_name"] or "",
            **_read_flavor(call, server["flavor"]["id"]),
            **_read_image(call, server, state),
            "availabilityZone": server.get("OS-EXT-AZ:availability_zone") or "",
            "powerState": power,
            "hypervisorHostname": server.get("OS-EXT-SRV-ATTR:hypervisor_hostname") or "",
            **tags_of(tags, state),
        }

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        path = f"/servers/{call.identifier}"
        if "name" in changed:
            call.compute.put(path, {"server": {"name": after["name"]}})
        if "powerState" in changed:
            _power(call, str(before.get("powerState")).lower(), str(after["powerState"]).lower(), after)
        if "metadata" in changed:
            for key in (before.get("metadata") or {}).keys() - (after.get("metadata") or {}).keys():
                call.compute.delete(f"{path}/metadata/{quote(key, safe='')}")
            call.compute.post(f"{path}/metadata", {"metadata": after.get("metadata") or {}})
        if "securityGroups" in changed:
            _regroup(call, set(before.get("securityGroups") or ()), set(after.get("securityGroups") or ()))
        if "adminPass" in changed:
            call.compute.post(f"{path}/action", {"changePassword": {"adminPass": after.get("adminPass") or ""}})
        if changed & {"flavorId", "flavorName"}:
            _resize(call, after, changed)
        if changed & {"imageId", "imageName", "personalities"}:
            _rebuild(call, after, changed)
        if "tags" in changed:
            call.compute.put(f"{path}/tags", {"tags": new_tags(before, after)}, READ_TAGS)

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        path = f"/servers/{identifier}"
        if state.get("stopBeforeDestroy"):
            # A server that cannot be stopped is deleted all the same.
            with contextlib.suppress(ProviderError):
                _act(call, {"os-stop": None}, ["SHUTOFF"], ["ACTIVE"])
        if (state.get("vendorOptions") or {}).get("detachPortsBeforeDestroy"):
            _detach_ports(call, path, state)
        if state.get("forceDelete"):
            if call.compute.find(path):
                call.compute.post(f"{path}/action", {"forceDelete": ""})
        else:
            call.compute.delete(path)
        _wait(call, [GONE, "SOFT_DELETED"], _RUNNING)


def _wait(call: Call, targets: Any, pending: Any = ()) -> None:
    def status() -> str:
        found = call.compute.find(f"/servers/{call.identifier}")
        if found is None:
            return GONE
        server = found["server"]
        if server["status"] == "ERROR" and "ERROR" not in targets and pending:
            fault = (server.get("fault") or {}).get("message") or "Nova gives no fault"
            raise ProviderError(f"the server {call.identifier} ({server['name']}) went into status ERROR: {fault}")
        return str(server["status"])

    call.wait(f"the server {call.identifier}", status, targets, pending)


def _act(call: Call, action: Mapping[str, Any], targets: Any, pending: Any = ()) -> None:
    call.compute.post(f"/servers/{call.identifier}/action", action)
    _wait(call, targets, pending)


def _power(call: Call, before: str, after: str, inputs: Values) -> None:
    if after == "shelved_offloaded":
        _act(call, {"shelve": None}, ["SHELVED_OFFLOADED"])
    elif after == "paused":
        _act(call, {"pause": None}, ["PAUSED"])
    elif after == "shutoff":
        _act(call, {"os-stop": None}, ["SHUTOFF"])
    elif before in ("shelved", "shelved_offloaded"):
        zone = inputs.get("availabilityZone")
        _act(call, {"unshelve": {"availability_zone": zone} if zone else None}, ["ACTIVE"])
    elif before == "paused":
        _act(call, {"unpause": None}, ["ACTIVE"])
    elif before != "build":
        _act(call, {"os-start": None}, ["ACTIVE"])
    else:
        _wait(call, ["ACTIVE"])


def _regroup(call: Call, before: set[str], after: set[str]) -> None:
    path = f"/servers/{call.identifier}/action"
    for group in sorted(before - after):
        call.compute.post(path, {"removeSecurityGroup": {"name": group}})
    for group in sorted(after - before):
        call.compute.post(path, {"addSecurityGroup": {"name": group}})


def _resize(call: Call, after: Values, changed: frozenset[str]) -> None:
    flavor = after["flavorId"] if "flavorId" in changed else _flavor_named(call, after["flavorName"])
    resize = {"resize": {"flavorRef": flavor}}
    if (after.get("vendorOptions") or {}).get("ignoreResizeConfirmation"):
        _act(call, resize, _RUNNING, ["RESIZE", "VERIFY_RESIZE"])
        return
    _act(call, resize, ["VERIFY_RESIZE"], ["RESIZE"])
    _act(call, {"confirmResize": None}, _RUNNING, ["VERIFY_RESIZE"])


def _rebuild(call: Call, after: Values, changed: frozenset[str]) -> None:
    if "imageId" in changed:
        image = after["imageId"]
    elif "imageName" in changed:
        image = _image_named(call, after["imageName"])
    else:
        image = _image(call, after)
    request = given(imageRef=image, personality=_personality(after))
    _act(call, {"rebuild": request}, _RUNNING, ["REBUILD"])


def _detach_ports(call: Call, path: str, state: Values) -> None:
    for network in state.get("networks") or ():
        if network.get("port"):
            _detach_port(call, path, network["port"])


def _detach_port(call: Call, server: str, port: str) -> None:
    path = f"{server}/os-interface/{port}"
    call.compute.delete(path)
    call.wait(f"the port {port}", lambda: "ATTACHED" if call.compute.find(path) else "DETACHED", ["DETACHED"])


def _encoded(data: str | None) -> str | None:
    """Encode user data, unless it is encoded (gophercloud, openstack/compute/v2/servers)."""
    if not data:
        return None
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return base64.b64encode(data.encode()).decode()
    return data


def _version(inputs: Values) -> str | None:
    """Return the microversion, as upstream sets it one after the other."""
    found = None
    if inputs.get("networkMode"):
        found = NETWORK_MODE
    if inputs.get("tags"):
        found = TAGGED
    if inputs.get("hypervisorHostname") is not None:
        found = HYPERVISOR
    devices = inputs.get("blockDevices") or ()
    if any(each.get("multiattach") for each in devices):
        found = MULTIATTACH
    if any(each.get("volumeType") for each in devices):
        found = VOLUME_TYPE
    return found


def _device(given_device: Values) -> dict[str, Any]:
    source, target = given_device["sourceType"], given_device.get("destinationType")
    if source not in ("blank", "image", "snapshot", "volume"):
        raise ProviderError(f"a block device's sourceType is {source!r}; allowed are blank, image, snapshot, volume")
    if target not in ("local", "volume"):
        raise ProviderError(f"a block device's destinationType is {target!r}; allowed are local, volume")
    if source != "blank" and not given_device.get("uuid"):
        raise ProviderError(f"a block device from {source} needs a uuid")
    if (source, target) in (("image", "volume"), ("blank", "local")) and not given_device.get("volumeSize"):
        raise ProviderError(f"a block device from {source} to {target} needs a volumeSize")
    return given(
        source_type=source,
        destination_type=target,
        uuid=given_device.get("uuid"),
        volume_size=given_device.get("volumeSize") or None,
        guest_format=given_device.get("guestFormat"),
        volume_type=given_device.get("volumeType"),
        device_type=given_device.get("deviceType"),
        disk_bus=given_device.get("diskBus"),
    ) | {
        "boot_index": given_device.get("bootIndex") or 0,
        "delete_on_termination": bool(given_device.get("deleteOnTermination")),
    }


def _boots_from_image(values: Values) -> bool:
    devices = values.get("blockDevices") or ()
    return not devices or any(
        (each.get("sourceType"), each.get("destinationType")) == ("image", "local") for each in devices
    )


def _image(call: Call, inputs: Values) -> str:
    if not _boots_from_image(inputs):
        return ""
    found = inputs.get("imageId") or os.environ.get("OS_IMAGE_ID")
    name = inputs.get("imageName") or os.environ.get("OS_IMAGE_NAME")
    if found:
        return str(found)
    if not name:
        raise ProviderError("a server needs an imageId, an imageName or a block device that it boots from")
    return _image_named(call, name)


def _image_named(call: Call, name: str) -> str:
    return _only(call.image.get("/images", name=name)["images"], "images", name)


def _flavor(call: Call, inputs: Values) -> str:
    found = inputs.get("flavorId") or os.environ.get("OS_FLAVOR_ID")
    name = inputs.get("flavorName") or os.environ.get("OS_FLAVOR_NAME")
    if found:
        return str(found)
    if not name:
        raise ProviderError("a server needs a flavorId or a flavorName")
    return _flavor_named(call, name)


def _flavor_named(call: Call, name: str) -> str:
    flavors = call.compute.get("/flavors/detail")["flavors"]
    return _only([each for each in flavors if each["name"] == name], "flavors", name)


def _only(found: list[dict[str, Any]], what: str, name: str) -> str:
    if len(found) != 1:
        raise ProviderError(f"{len(found)} {what} are named {name}; one is expected")
    return str(found[0]["id"])


def _personality(inputs: Values) -> list[dict[str, str]]:
    return [
        {"path": each["file"], "contents": base64.b64encode(each["content"].encode()).decode()}
        for each in inputs.get("personalities") or ()
    ]


def _hints(inputs: Values) -> dict[str, Any]:
    hints = (inputs.get("schedulerHints") or [{}])[0]
    return given(
        group=hints.get("group"),
        different_host=hints.get("differentHosts"),
        same_host=hints.get("sameHosts"),
        query=hints.get("queries"),
        target_cell=hints.get("targetCell"),
        different_cell=hints.get("differentCells"),
        build_near_host_ip=hints.get("buildNearHostIp"),
    ) | (hints.get("additionalProperties") or {})


def _networks(call: Call, inputs: Values) -> Any:
    mode = str(inputs.get("networkMode") or "").lower()
    if mode:
        return mode
    return [
        given(uuid=each["uuid"], port=each["port"], fixed_ip=each["fixed_ip"])
        for each in _wanted_networks(call, inputs)
    ]


def _wanted_networks(call: Call, values: Values) -> Iterator[dict[str, Any]]:
    for each in values.get("networks") or ():
        port, uuid, name = each.get("port"), each.get("uuid"), each.get("name")
        if not (port or uuid or name):
            raise ProviderError("a network of a server needs a uuid, a name or a port")
        if not (uuid and name):
            network = _network(call, port, uuid, name)
            uuid, name = network["id"], network["name"]
        yield {
            "uuid": uuid,
            "name": name,
            "port": port or "",
            "fixed_ip": each.get("fixedIpV4") or "",
            "access": bool(each.get("accessNetwork")),
        }


def _network(call: Call, port: str | None, uuid: str | None, name: str | None) -> Any:
    if port:
        found = call.network.get("/ports", id=port)["ports"]
        if len(found) != 1:
            raise ProviderError(f"there is no port {port}")
        uuid = found[0]["network_id"]
    by = {"id": uuid} if uuid else {"name": name}
    networks = call.network.get("/networks", status="ACTIVE", **by)["networks"]
    if len(networks) != 1:
        raise ProviderError(f"{len(networks)} active networks have the {'ID' if uuid else 'name'} {uuid or name}")
    return networks[0]


def _read_networks(call: Call, server: Values, state: Values) -> list[dict[str, Any]]:
    cards = {name: _cards(addresses) for name, addresses in server["addresses"].items()}
    wanted = list(_wanted_networks(call, state))
    if not wanted:
        return [{"name": name, **card} for name, of_network in cards.items() for card in of_network]
    return [
        {
            "name": each["name"],
            **cards[each["name"]].pop(0),
            "uuid": each["uuid"],
            "port": each["port"],
            "accessNetwork": each["access"],
        }
        for each in wanted
        if cards.get(each["name"])
    ]


def _cards(addresses: list[dict[str, Any]]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for each in addresses:
        mac = each.get("OS-EXT-IPS-MAC:mac_addr", "")
        card = found.setdefault(mac, {"fixedIpV4": "", "fixedIpV6": "", "mac": mac})
        if each.get("OS-EXT-IPS:type", "fixed") == "fixed":
            card["fixedIpV6" if each["version"] == 6 else "fixedIpV4"] = each["addr"]
    return list(found.values())


def _access(networks: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the IPv4 and the IPv6 address of the access network, else of the first that has one."""
    found = {}
    for version in ("fixedIpV4", "fixedIpV6"):
        having = [each for each in networks if each.get(version)]
        preferred = [each for each in having if each.get("accessNetwork")]
        found[version] = (preferred[-1:] or having[:1] or [{version: ""}])[0][version]
    return found["fixedIpV4"], found["fixedIpV6"]


def _read_flavor(call: Call, identifier: str) -> dict[str, str]:
    found = call.compute.find(f"/flavors/{identifier}")
    return (
        {"flavorId": identifier, "flavorName": found["flavor"]["name"]} if found else {"flavorId": "", "flavorName": ""}
    )


def _read_image(call: Call, server: Values, state: Values) -> dict[str, str]:
    if not _boots_from_image(state):
        return {"imageId": NO_IMAGE}
    identifier = (server.get("image") or {}).get("id")
    if not identifier:
        return {}
    found = call.image.find(f"/images/{identifier}")
    return {"imageId": identifier, "imageName": found["name"] if found else "Image not found"}
