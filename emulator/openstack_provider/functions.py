"""The functions that are answered: they look something up, by name or by ID, and say how much of it there may be.

What they ask and answer follows terraform-provider-openstack v3.4.0, openstack/data_source_openstack_<upstream>.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from emulator.openstack_provider import inputs, schema
from emulator.openstack_provider.cloud import Cloud, Service
from emulator.openstack_provider.errors import NotServedError
from emulator.openstack_provider.schema import DEFAULTS
from emulator.plugin.errors import ProviderError
from emulator.plugin.wire import Secret

Arguments = Mapping[str, Any]
Answer = dict[str, Any]

_DESCRIBED: Final = "2.55"
_OF_A_USER: Final = "2.10"
_PAGE: Final = 1000


def answer(cloud: Cloud, token: str, arguments: Arguments) -> Answer:
    """Answer a function. Raises NotServedError for one that is not served, ProviderError for wrong arguments."""
    if token not in _ANSWERS:
        raise NotServedError(token, ", ".join(_ANSWERS))
    properties = schema.functions()[token].properties
    given = inputs.completed(arguments, {}, properties, naming=None)
    failures = [reason for _, reason in inputs.problems(given, properties)]
    if failures:
        raise ProviderError(f"{token}: {'; '.join(failures)}")
    given.pop(DEFAULTS)
    region = str(given.get("region") or cloud.region)
    found = _ANSWERS[token](cloud, region, given)
    return {**given, **found, "region": region}


def _images(cloud: Cloud, region: str, given: Arguments) -> list[dict[str, Any]]:
    service = cloud.service("image", region)
    tags = [*given.get("tags", ()), *([given["tag"]] if given.get("tag") else ())]
    query = _query(given, "name", "visibility", "owner", "sort", memberStatus="member_status", sizeMin="size_min")
    query |= _query(given, sizeMax="size_max", containerFormat="container_format", diskFormat="disk_format")
    if given.get("hidden"):
        query["os_hidden"] = "true"
    found, path = [], "/images"
    query |= {"status": "active", "limit": _PAGE, "tag": tags}
    while path:
        page = service.get(path, **query)
        found += page["images"]
        path, query = str(page.get("next") or "").removeprefix("/v2"), {}
    return found


def _filtered(images: list[dict[str, Any]], given: Arguments) -> list[dict[str, Any]]:
    wanted = given.get("properties") or {}
    found = [each for each in images if all(str(each.get(key)) == value for key, value in wanted.items())]
    return [each for each in found if re.search(given["nameRegex"], each["name"])] if given.get("nameRegex") else found


def _image(cloud: Cloud, region: str, given: Arguments) -> Answer:
    images = _images(cloud, region, given)
    # Upstream looks at properties only where they have to decide.
    without = {name: value for name, value in given.items() if name != "properties"}
    found = _filtered(images, given if len(images) > 1 else without)
    if given.get("mostRecent"):
        found = sorted(found, key=lambda each: str(each["created_at"]))[-1:]
    image = _only(found, "images", given, "; set mostRecent to take the newest")
    return {
        "id": image["id"],
        **_renamed(image, "name", "owner", "protected", "visibility", "checksum", "file", "schema", "tags"),
        **_renamed(image, containerFormat="container_format", diskFormat="disk_format", minDiskGb="min_disk"),
        **_renamed(image, minRamMb="min_ram", sizeBytes="size", createdAt="created_at", updatedAt="updated_at"),
        "hidden": image.get("os_hidden", False),
        "metadata": {},
        "properties": {name: str(value) for name, value in image.items() if name not in _IMAGE_FIELDS},
    }


_IMAGE_FIELDS: Final = frozenset(
    (
        *("id", "name", "owner", "protected", "visibility", "checksum", "file", "schema", "tags", "container_format"),
        *("disk_format", "min_disk", "min_ram", "size", "created_at", "updated_at", "os_hidden", "status", "self"),
        *("virtual_size", "locations", "direct_url"),
    )
)


def _image_ids(cloud: Cloud, region: str, given: Arguments) -> Answer:
    found = [each["id"] for each in _filtered(_images(cloud, region, given), given)]
    return {"id": ",".join(found), "ids": found}


def _flavor(cloud: Cloud, region: str, given: Arguments) -> Answer:
    service = cloud.service("compute", region)
    if given.get("flavorId"):
        one = service.find(f"/flavors/{given['flavorId']}", _DESCRIBED)
        flavors = [one["flavor"]] if one else []
    else:
        public = str(given.get("isPublic", "none")).lower()
        query = _query(given, minDisk="minDisk", minRam="minRam")
        flavors = service.get("/flavors/detail", _DESCRIBED, is_public=public, **query)["flavors"]
    exact = {"name": "name", "description": "description", "ram": "ram", "vcpus": "vcpus", "disk": "disk"}
    exact |= {"swap": "swap", "rxTxFactor": "rxtx_factor"}
    for argument, field in exact.items():
        if given.get(argument):
            flavors = [each for each in flavors if (each.get(field) or 0) == given[argument]]
    flavor = _only(flavors, "flavors", given)
    specifications = service.find(f"/flavors/{flavor['id']}/os-extra_specs")
    return {
        "id": flavor["id"],
        "flavorId": flavor["id"],
        **_renamed(flavor, "name", "ram", "vcpus", "disk"),
        "swap": flavor["swap"] or 0,
        "description": flavor.get("description") or "",
        **_renamed(flavor, rxTxFactor="rxtx_factor", isPublic="os-flavor-access:is_public"),
        "extraSpecs": specifications["extra_specs"] if specifications else {},
    }


def _keypair(cloud: Cloud, region: str, given: Arguments) -> Answer:
    user = f"?user_id={given['userId']}" if given.get("userId") else ""
    found = cloud.service("compute", region).get(f"/os-keypairs/{given['name']}{user}", _OF_A_USER)["keypair"]
    return {"id": given["name"], **_renamed(found, fingerprint="fingerprint", publicKey="public_key", userId="user_id")}


def _zones(cloud: Cloud, region: str, given: Arguments) -> Answer:
    wanted = given["state"].lower() == "available"
    zones = cloud.service("compute", region).get("/os-availability-zone")["availabilityZoneInfo"]
    found = sorted(each["zoneName"] for each in zones if each["zoneState"]["available"] is wanted)
    return {"id": ",".join(found), "names": found}


def _network(cloud: Cloud, region: str, given: Arguments) -> Answer:
    service = cloud.service("network", region)
    query = _query(given, "name", "description", "status", networkId="id", tenantId="tenant_id")
    query |= _query(given, external="router:external", transparentVlan="vlan_transparent", mtu="mtu")
    found = _list(service, "networks", given, query)
    if given.get("matchingSubnetCidr"):
        subnets = service.get("/subnets", cidr=given["matchingSubnetCidr"])["subnets"]
        found = [each for each in found if each["id"] in {subnet["network_id"] for subnet in subnets}]
    network = _only(found, "networks", given)
    segments = network.get("segments") or [network]
    return {
        "id": network["id"],
        **_renamed(network, "name", "description", "subnets", tenantId="tenant_id", external="router:external"),
        "adminStateUp": str(network["admin_state_up"]).lower(),
        "shared": str(network["shared"]).lower(),
        "availabilityZoneHints": network.get("availability_zone_hints") or [],
        "segments": [
            {
                "physicalNetwork": each.get("provider:physical_network") or "",
                "networkType": each["provider:network_type"],
                "segmentationId": each.get("provider:segmentation_id") or 0,
            }
            for each in segments
            if each.get("provider:network_type")
        ],
        "transparentVlan": bool(network.get("vlan_transparent")),
        "mtu": network.get("mtu") or 0,
        "dnsDomain": network.get("dns_domain") or "",
        "allTags": sorted(network.get("tags", [])),
    }


def _subnet(cloud: Cloud, region: str, given: Arguments) -> Answer:
    query = _query(given, "name", "description", "cidr", subnetId="id", networkId="network_id", tenantId="tenant_id")
    query |= _query(given, dhcpEnabled="enable_dhcp", ipVersion="ip_version", gatewayIp="gateway_ip")
    query |= _query(given, ipv6AddressMode="ipv6_address_mode", ipv6RaMode="ipv6_ra_mode", segmentId="segment_id")
    query |= _query(given, subnetpoolId="subnetpool_id", dnsPublishFixedIp="dns_publish_fixed_ip")
    subnet = _only(_list(cloud.service("network", region), "subnets", given, query), "subnets", given)
    return {
        "id": subnet["id"],
        **_renamed(subnet, "name", "description", "cidr", tenantId="tenant_id", networkId="network_id"),
        **_renamed(subnet, ipVersion="ip_version", enableDhcp="enable_dhcp"),
        "dnsNameservers": subnet["dns_nameservers"],
        "gatewayIp": subnet["gateway_ip"] or "",
        "ipv6AddressMode": subnet.get("ipv6_address_mode") or "",
        "ipv6RaMode": subnet.get("ipv6_ra_mode") or "",
        "segmentId": subnet.get("segment_id") or "",
        "subnetpoolId": subnet.get("subnetpool_id") or "",
        "dnsPublishFixedIp": bool(subnet.get("dns_publish_fixed_ip")),
        "serviceTypes": subnet.get("service_types") or [],
        "allocationPools": [_renamed(each, "start", "end") for each in subnet["allocation_pools"]],
        "hostRoutes": _routes(subnet["host_routes"]),
        "allTags": sorted(subnet.get("tags", [])),
    }


def _router(cloud: Cloud, region: str, given: Arguments) -> Answer:
    query = _query(given, "name", "description", "distributed", "status", routerId="id", tenantId="tenant_id")
    query |= _query(given, adminStateUp="admin_state_up")
    router = _only(_list(cloud.service("network", region), "routers", given, query), "routers", given)
    gateway = router.get("external_gateway_info") or {}
    return {
        "id": router["id"],
        **_renamed(router, "name", "description", "status", adminStateUp="admin_state_up", tenantId="tenant_id"),
        "distributed": router.get("distributed", False),
        "externalNetworkId": gateway.get("network_id") or "",
        "enableSnat": gateway.get("enable_snat", False),
        "externalQosPolicyId": gateway.get("qos_policy_id") or "",
        "externalFixedIps": [
            _renamed(each, subnetId="subnet_id", ipAddress="ip_address")
            for each in gateway.get("external_fixed_ips") or ()
        ],
        "availabilityZoneHints": router.get("availability_zone_hints") or [],
        "routes": _routes(router.get("routes") or []),
        "allTags": sorted(router.get("tags", [])),
    }


def _security_group(cloud: Cloud, region: str, given: Arguments) -> Answer:
    query = _query(given, "name", "description", "stateful", secgroupId="id", tenantId="tenant_id")
    found = _list(cloud.service("network", region), "security-groups", given, query)
    group = _only(found, "security groups", given)
    return {
        "id": group["id"],
        **_renamed(group, "name", "description", tenantId="tenant_id"),
        "stateful": group.get("stateful", True),
        "allTags": sorted(group.get("tags", [])),
    }


def _volume(cloud: Cloud, region: str, given: Arguments) -> Answer:
    query = _query(given, "name", "status")
    if given.get("metadata"):
        query["metadata"] = str(dict(given["metadata"]))
    volume = _only(cloud.service("block_storage", region).get("/volumes/detail", **query)["volumes"], "volumes", given)
    return {
        "id": volume["id"],
        **_renamed(volume, "status", "metadata", "bootable", "size", volumeType="volume_type"),
        "name": volume["name"] or "",
        "sourceVolumeId": volume["source_volid"] or "",
        "host": volume.get("os-vol-host-attr:host") or "",
        "attachments": [
            {"id": each["id"], "instanceId": each["server_id"], "device": each["device"]}
            for each in volume["attachments"]
        ],
    }


def _quota(service: str, path: str, key: str) -> Callable[[Cloud, str, Arguments], Answer]:
    """Return what answers for the quotas of a service: those of its fields that the function has, of a project."""

    def find(cloud: Cloud, region: str, given: Arguments) -> Answer:
        project = given["projectId"]
        found = cloud.service(service, region).get(path.format(project=project))
        for part in key.split("."):
            found = found[part]
        fields = {_camel(name): value for name, value in found.items()}
        per_type = {
            name: str(value)
            for name, value in found.items()
            if name.startswith(("volumes_", "gigabytes_", "snapshots_"))
        }
        more = {"volumeTypeQuota": per_type} if service == "block_storage" else {}
        return {**fields, **more, "id": f"{project}/{region}"}

    return find


def _selected(token: str, find: Callable[[Cloud, str, Arguments], Answer]) -> Callable[[Cloud, str, Arguments], Answer]:
    def select(cloud: Cloud, region: str, given: Arguments) -> Answer:
        found, properties = find(cloud, region, given), schema.functions()[token].properties
        kept = {name: value for name, value in found.items() if name == "id" or name in properties}
        # A service that has no such limit any more says nothing of it.
        return {name: 0 for name, each in properties.items() if each.kind == "integer"} | kept

    return select


def _scope(cloud: Cloud, region: str, given: Arguments) -> Answer:
    access = cloud.access(region)
    found = {
        "id": given["name"],
        "userId": access.user_id,
        "userName": access.username,
        "userDomainId": access.user_domain_id,
        "userDomainName": access.user_domain_name,
        "domainId": access.domain_id,
        "domainName": access.domain_name,
        "projectId": access.project_id,
        "projectName": access.project_name,
        "projectDomainId": access.project_domain_id,
        "projectDomainName": access.project_domain_name,
        "tokenId": Secret(access.auth_token) if given.get("setTokenId") else "",
    }
    roles = zip(access.role_ids or (), access.role_names or (), strict=True)
    return {
        **{name: value or "" for name, value in found.items()},
        "roles": [{"roleId": identifier, "roleName": name} for identifier, name in roles],
        "serviceCatalogs": [
            {
                **_renamed(each, "id", "name", "type"),
                "endpoints": [
                    _renamed(endpoint, "id", "region", "interface", "url", regionId="region_id")
                    for endpoint in each["endpoints"]
                ],
            }
            for each in access.service_catalog.catalog
        ],
    }


def _query(given: Arguments, *same: str, **names: str) -> dict[str, Any]:
    """Return the arguments as a query: by their own name, or by the API's."""
    wanted = {**{name: name for name in same}, **names}
    found = {field: given[argument] for argument, field in wanted.items() if given.get(argument) not in (None, "", 0)}
    flags = {field: given[argument] for argument, field in wanted.items() if isinstance(given.get(argument), bool)}
    return {
        field: str(value).lower() if isinstance(value, bool) else value for field, value in {**found, **flags}.items()
    }


def _list(service: Service, what: str, given: Arguments, query: Mapping[str, Any]) -> list[dict[str, Any]]:
    tags = {"tags": ",".join(given["tags"])} if given.get("tags") else {}
    found: list[dict[str, Any]] = service.get(f"/{what}", **query, **tags)[what.replace("-", "_")]
    return found


def _only(found: list[dict[str, Any]], what: str, given: Arguments, several: str = "") -> dict[str, Any]:
    if len(found) == 1:
        return found[0]
    hint = several if found else ""
    asked = ", ".join(f"{name} {value!r}" for name, value in sorted(given.items()) if value and name != "sort")
    raise ProviderError(f"{len(found) or 'no'} {what} have {asked or 'nothing in particular'}; one is expected{hint}")


def _renamed(found: Mapping[str, Any], *same: str, **names: str) -> dict[str, Any]:
    return {name: found.get(field) for name, field in {**{name: name for name in same}, **names}.items()}


def _routes(routes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_renamed(each, destinationCidr="destination", nextHop="nexthop") for each in routes]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


_QUOTAS: Final = {
    "openstack:compute/getQuotaSetV2:getQuotaSetV2": _quota("compute", "/os-quota-sets/{project}", "quota_set"),
    "openstack:compute/getLimitsV2:getLimitsV2": _quota("compute", "/limits?tenant_id={project}", "limits.absolute"),
    "openstack:networking/getQuotaV2:getQuotaV2": _quota("network", "/quotas/{project}", "quota"),
    "openstack:blockstorage/getQuotasetV3:getQuotasetV3": _quota(
        "block_storage", "/os-quota-sets/{project}", "quota_set"
    ),
}
_ANSWERS: Final[Mapping[str, Callable[[Cloud, str, Arguments], Answer]]] = {
    "openstack:images/getImage:getImage": _image,
    "openstack:images/getImageIds:getImageIds": _image_ids,
    "openstack:compute/getFlavor:getFlavor": _flavor,
    "openstack:compute/getKeypair:getKeypair": _keypair,
    "openstack:compute/getAvailabilityZones:getAvailabilityZones": _zones,
    "openstack:networking/getNetwork:getNetwork": _network,
    "openstack:networking/getSubnet:getSubnet": _subnet,
    "openstack:networking/getRouter:getRouter": _router,
    "openstack:networking/getSecGroup:getSecGroup": _security_group,
    "openstack:blockstorage/getVolumeV3:getVolumeV3": _volume,
    "openstack:identity/getAuthScope:getAuthScope": _scope,
    **{token: _selected(token, find) for token, find in _QUOTAS.items()},
}
