"""Creates the content of `facts.yaml` in new services, through their own APIs."""

from __future__ import annotations

from typing import Any

import openstack
from openstack.connection import Connection

from emulator.openstack.configuration import SERVICE_PROJECT, SERVICE_USER
from emulator.openstack.facts import facts
from emulator.openstack.folder import CATALOG, Folder, url

_IMAGE_BYTES = 64 * 1024
_DOMAIN = "default"


def administrator(folder: Folder) -> Connection:
    """Return a connection of the cloud's administrator."""
    return _connection(folder, "admin", folder.secrets()["admin"], "admin")


def identity(folder: Folder) -> None:
    """Create the catalog, the services' account, the project and its member. Only Keystone must run."""
    names, secrets = facts(), folder.secrets()
    keystone = _identity(administrator(folder))
    for service, (kind, path) in CATALOG.items():
        if service == "keystone":
            continue  # Keystone's bootstrap creates it
        entry = keystone.create_service(name=service, type=kind)
        address = url(folder.ports()[service]) + path
        keystone.create_endpoint(service_id=entry.id, interface="public", url=address, region_id=names["region"])
    roles = {role.name: role for role in keystone.roles()}
    roles |= {name: keystone.create_role(name=name) for name in names["roles"] if name not in roles}
    for user, password, project, granted in (
        (SERVICE_USER, secrets["service"], SERVICE_PROJECT, ("admin", "service")),
        (names["user"], secrets["member"], names["project"], names["roles"]),
    ):
        member = keystone.create_user(name=user, password=password, domain_id=_DOMAIN)
        home = keystone.create_project(name=project, domain_id=_DOMAIN)
        for role in granted:
            home.assign_role_to_user(keystone, member, roles[role], False)


def credential(folder: Folder) -> dict[str, str]:
    """Create the member's application credential; return its id and its secret, which cannot be read later."""
    names = facts()
    member = _connection(folder, names["user"], folder.secrets()["member"], names["project"])
    made = _identity(member).create_application_credential(
        user=str(member.current_user_id),
        name=names["credential"]["name"],
        roles=[{"name": role} for role in names["credential"]["roles"]],
        unrestricted=False,
    )
    return {"credential_id": str(made.id), "credential_secret": str(made.secret)}


def project_id(cloud: Connection) -> str:
    """Return the id of the project."""
    return str(_identity(cloud).find_project(facts()["project"], ignore_missing=False).id)


def content(folder: Folder) -> None:
    """Create flavors, images, networks, volume types and quotas. All services must run."""
    cloud, names = administrator(folder), facts()
    project = project_id(cloud)
    for name, flavor in names["flavors"].items():
        cloud.compute.create_flavor(name=name, **flavor)
    for name, properties in names["images"].items():
        cloud.image.create_image(
            name=name,
            data=bytes(_IMAGE_BYTES),
            disk_format="raw",
            container_format="bare",
            visibility="public",
            root_device_name="/dev/vda",  # libvirt's name for virtio disks; Nova's fake driver uses another
            **properties,
        )
    for name, description in names["volume_types"].items():
        cloud.block_storage.create_type(name=name, description=description)
    unnamed = cloud.block_storage.find_type("__DEFAULT__", ignore_missing=False)  # from Cinder's own migrations
    cloud.block_storage.delete_type(unnamed.id)
    _networks(cloud, project, names)
    cloud.compute.update_quota_set(project, **names["quotas"]["compute"])
    cloud.network.update_quota(project, **names["quotas"]["network"])
    cloud.block_storage.update_quota_set(project, **names["quotas"]["volume"])


def _networks(cloud: Connection, project: str, names: dict[str, Any]) -> None:
    external, internal = names["external"], names["internal"]
    public = cloud.network.create_network(
        name=external["name"],
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network="external",
    )
    pool = {"start": external["first"], "end": external["last"]}
    cloud.network.create_subnet(
        name=external["name"],
        network_id=public.id,
        ip_version=4,
        cidr=external["cidr"],
        is_dhcp_enabled=False,
        allocation_pools=[pool],
    )
    network = cloud.network.create_network(name=names["project"], project_id=project)
    subnet = cloud.network.create_subnet(
        name=names["project"],
        project_id=project,
        network_id=network.id,
        ip_version=4,
        cidr=internal["cidr"],
        dns_nameservers=internal["dns"],
    )
    router = cloud.network.create_router(
        name=names["project"], project_id=project, external_gateway_info={"network_id": public.id}
    )
    cloud.network.add_interface_to_router(router, subnet=subnet.id)


def _identity(cloud: Connection) -> Any:
    """Return Keystone's API. The SDK types it as either version, and the second has no domains."""
    return cloud.identity


def _connection(folder: Folder, user: str, password: str, project: str) -> Connection:
    return openstack.connect(
        load_envvars=False,
        load_yaml_config=False,
        auth_url=f"{url(folder.ports()['keystone'])}/v3",
        username=user,
        password=password,
        project_name=project,
        user_domain_id=_DOMAIN,
        project_domain_id=_DOMAIN,
        region_name=facts()["region"],
        interface="public",
    )
