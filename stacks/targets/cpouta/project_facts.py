"""Facts about an OpenStack project: its offers, free quotas and existing resources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from components.openstack import notes
from components.openstack.notes import CLUSTER, IMAGE
from stacks.settings.cidr import too_wide
from stacks.targets.cpouta import sign_in
from stacks.targets.cpouta.key_file import Obstacle
from stacks.targets.cpouta.sign_in import ProjectError

if TYPE_CHECKING:
    from openstack.connection import Connection


@dataclass(frozen=True, kw_only=True)
class Room:
    """A quota. limit: None for unlimited. used: by all resources of the project."""

    limit: int | None
    used: int


@dataclass(frozen=True, kw_only=True)
class FlavorFacts:
    """A flavor that the project may use. memory_mib: of RAM."""

    cores: int
    memory_mib: int


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """An existing VM.

    cluster: its configured cluster, as `cluster_note` writes it, or empty if it is not recorded. boot_volume_gib: of
    the volume that it boots from, 0 if that is the flavor's own disk. error: why its status is ERROR, empty if it is
    another one.
    """

    flavor: str
    id: str = ""
    cluster: str = ""
    boot_volume_gib: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class VolumeFacts:
    """A volume.

    size_gib: as it is. status: available, in-use and so on. has_system: an image was written to it. kind: its type.
    servers: the IDs of the VMs that use it. cluster: on it, as for a VM, or empty if it is not recorded.
    """

    size_gib: int
    status: str
    has_system: bool
    kind: str = ""
    servers: frozenset[str] = frozenset()
    cluster: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleFacts:
    """Allowed connections. ports: such as 22, 80 to 90, all. source: a network or a group's ID, None for everyone."""

    ports: str
    source: str | None
    description: str

    @property
    def is_wide(self) -> bool:
        """Whether it allows almost all addresses, and not a group of the project."""
        if self.source is None:
            return True
        try:
            return bool(too_wide([self.source]))
        except ValueError:
            return False


@dataclass(frozen=True, kw_only=True)
class ProjectFacts:
    """A project.

    flavors, images, networks: by name; of images and networks with their IDs. pools, volume_types: the
        names of external networks and of types. zones: names of the availability zones of VMs.
    own_images: names that no public image has, only images of the project or shared with it.
    ambiguous: names that several networks have, which OpenStack allows.
    routes: the pools that routers lead to, by name of the project's own networks. Unknown for other networks.
    quotas: by resource, such as cores. server, volume: with the stack's name, None if missing.
    has_address, has_port, has_group: the stack has its floating address, its port and its security group already.
    doubles: the IDs of the stack's resources that exist several times, by kind, as in the command `openstack`. A
        resource whose creation was not answered is not in the state.
    owner: the stack of the security group, or empty if it is not recorded. rules: of that group, for ingress.
    other_groups: other groups of the VM's ports, by name, with their ingress rules. unguarded: the IDs of its ports
        without port security: no rule applies to them. is_left_out: the VM's own port is not in the stack's group. A
        refresh does not find any of this (terraform-provider-openstack, resourceNetworkingPortV2Read).
    existing: the volume that the settings name, None if no volume has the ID.
    obstacle: why this machine could not sign in to a VM of the project, None if it can.
    key_pair: the public key in the user's key pair with the stack's name, None if missing.
    """

    flavors: Mapping[str, FlavorFacts]
    images: Mapping[str, str]
    networks: Mapping[str, str]
    pools: frozenset[str]
    volume_types: frozenset[str]
    zones: frozenset[str]
    own_images: frozenset[str] = frozenset()
    ambiguous: frozenset[str] = frozenset()
    routes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    quotas: Mapping[str, Room] = field(default_factory=dict)
    server: ServerFacts | None = None
    volume: VolumeFacts | None = None
    has_address: bool = False
    has_port: bool = False
    has_group: bool = False
    doubles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    owner: str = ""
    rules: tuple[RuleFacts, ...] = ()
    other_groups: Mapping[str, tuple[RuleFacts, ...]] = field(default_factory=dict)
    unguarded: tuple[str, ...] = ()
    is_left_out: bool = False
    existing: VolumeFacts | None = None
    obstacle: Obstacle | None = None
    key_pair: str | None = None


def ask(environment: Mapping[str, str], *, name: str, existing: str | None) -> ProjectFacts:
    """Return facts about the project of the OS_* variables. Raises ProjectError if it does not answer.

    name: of the stack's resources. existing: the id of a volume to look at.
    """
    # Imported here, because it takes a second and only this target needs it.
    from keystoneauth1 import exceptions as signing
    from openstack import exceptions as answers
    from requests import RequestException

    try:
        return _facts(sign_in.connect(environment), name, existing)
    except (signing.Unauthorized, signing.MissingRequiredOptions, signing.MissingAuthPlugin) as error:
        raise ProjectError(f"cannot sign in: {_first_line(error)}; the credentials are wrong or expired") from None
    except answers.ConfigException as error:
        raise ProjectError(f"the credentials are incomplete: {_first_line(error)}") from None
    except answers.ForbiddenException as error:
        raise ProjectError(
            f"these credentials cannot read the project: {_first_line(error)}",
            "create an application credential with the role member and without access rules",
        ) from None
    except (signing.ClientException, answers.SDKException, RequestException) as error:
        raise ProjectError(
            f"no answer from {environment.get('OS_AUTH_URL') or environment.get('OS_CLOUD')}: {_first_line(error)}",
            "check the address in OS_AUTH_URL, the network, and CSC's service breaks; then try again",
        ) from None


def _facts(cloud: Connection, name: str, existing: str | None) -> ProjectFacts:
    networks = list(cloud.network.networks())
    groups = list(cloud.network.security_groups(name=name))
    group = next(iter(groups), None)
    images = list(cloud.image.images(status="active", sort="created_at:asc"))
    servers, own = list(_servers(cloud, name)), list(cloud.network.ports(name=name))
    server = _server(cloud, servers[0]) if servers else None
    volumes = list(_data_volumes(cloud, name))
    addresses = [item for item in cloud.network.ips() if item.description == notes.address(name)]
    noted: dict[str, list[Any]] = {
        "floating ip": addresses,
        "port": own,
        "security group": groups,
        "server": servers,
        "volume": volumes,
    }
    ports = {
        item.id: item for item in [*own, *(cloud.network.ports(device_id=server.id) if server is not None else ())]
    }
    return ProjectFacts(
        flavors={item.name: FlavorFacts(cores=item.vcpus, memory_mib=item.ram) for item in cloud.compute.flavors()},
        images=dict(_images(images)),
        networks={item.name: item.id for item in networks if not item.is_router_external},
        pools=frozenset(item.name for item in networks if item.is_router_external),
        volume_types=frozenset(item.name for item in cloud.block_storage.types()),
        zones=frozenset(item.name for item in cloud.compute.availability_zones() if item.state.get("available")),
        own_images=frozenset(item.name for item in images) - {item.name for item in images if _is_public(item)},
        ambiguous=frozenset(name for name, number in Counter(item.name for item in networks).items() if number > 1),
        routes=dict(_routes(cloud, networks)),
        quotas=dict(_quotas(cloud)),
        server=server,
        volume=_volume(volumes[0]) if volumes else None,
        has_address=bool(addresses),
        has_port=bool(own),
        has_group=group is not None,
        doubles={kind: tuple(item.id for item in items) for kind, items in noted.items() if len(items) > 1},
        owner=notes.firewall_owner(group.description or "") if group is not None else "",
        rules=tuple(_rules(cloud, group.id)) if group is not None else (),
        other_groups=dict(_other_groups(cloud, ports.values(), group)),
        unguarded=tuple(sorted(item.id for item in ports.values() if item.is_port_security_enabled is False)),
        is_left_out=group is not None and any(group.id not in item.security_group_ids for item in own),
        existing=_existing(cloud, existing),
        key_pair=_key_pair(cloud, name),
    )


def _routes(cloud: Connection, networks: Sequence[Any]) -> Iterator[tuple[str, frozenset[str]]]:
    names = {item.id: item.name for item in networks}
    gateways = {
        item.id: names.get((item.external_gateway_info or {}).get("network_id"), "")
        for item in cloud.network.routers(project_id=cloud.current_project_id)
    }
    ports = list(cloud.network.ports(project_id=cloud.current_project_id))
    for network in networks:
        if not network.is_router_external and network.project_id == cloud.current_project_id:
            # The port of any kind of router interface names its router.
            joined = {port.device_id for port in ports if port.network_id == network.id}
            yield network.name, frozenset(gateways[router] for router in joined & gateways.keys())


def _images(oldest_first: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield images by name with their IDs. If several images have a name, the one to use comes last.

    That is the newest public one, which only CSC can create (CSCfi/csc-user-guide, docs/cloud/pouta/adding-images.md).
    Members of the project can give their own images the name of one of CSC's.
    """
    yield from ((item.name, item.id) for item in sorted(oldest_first, key=_is_public))


def _is_public(image: Any) -> bool:
    return bool(image.visibility == "public")


def _servers(cloud: Connection, name: str) -> Iterator[Any]:
    """Yield the VMs that stacks have created with a name. Several VMs can have the same name."""
    # Nova reads the name as a regular expression, and VMs that no stack created do not record their image.
    for item in cloud.compute.servers(name=f"^{re.escape(name)}$"):
        if item.name == name and IMAGE in (item.metadata or {}):
            yield item


def _server(cloud: Connection, item: Any) -> ServerFacts:
    return ServerFacts(
        flavor=item.flavor.get("original_name") or item.flavor.get("name") or "",
        id=item.id,
        cluster=item.metadata.get(CLUSTER, ""),
        boot_volume_gib=_boot_volume(cloud, item.id),
        error=((item.fault or {}).get("message") or "Nova gives no reason").strip(" .")
        if item.status == "ERROR"
        else "",
    )


def _boot_volume(cloud: Connection, server: str) -> int:
    attached = (volume for item in cloud.block_storage.volumes() if server in (volume := _volume(item)).servers)
    return next((volume.size_gib for volume in attached if volume.has_system), 0)


def _key_pair(cloud: Connection, name: str) -> str | None:
    found = cloud.compute.find_keypair(name)
    return str(found.public_key) if found is not None else None


def _rules(cloud: Connection, group: str) -> Iterator[RuleFacts]:
    for item in cloud.network.security_group_rules(security_group_id=group, direction="ingress"):
        first, last = item.port_range_min, item.port_range_max
        ports = "all" if first is None else str(first) if first == last else f"{first} to {last}"
        source = item.remote_ip_prefix or item.remote_group_id
        yield RuleFacts(ports=ports, source=source, description=item.description or "")


def _other_groups(cloud: Connection, ports: Iterable[Any], own: Any) -> Iterator[tuple[str, tuple[RuleFacts, ...]]]:
    """Yield the groups of the ports other than the stack's. own: the stack's group, None before it exists."""
    found = {identifier for item in ports for identifier in item.security_group_ids}
    for identifier in sorted(found - {own.id if own is not None else None}):
        group = cloud.network.find_security_group(identifier)
        yield (group.name if group is not None else identifier), tuple(_rules(cloud, identifier))


def _data_volumes(cloud: Connection, name: str) -> Iterator[Any]:
    """Yield the volumes that stacks have created with a name. Several volumes can have the same name."""
    own = notes.data_volume(name)
    return (item for item in cloud.block_storage.volumes(name=name) if item.description == own)


def _existing(cloud: Connection, identifier: str | None) -> VolumeFacts | None:
    found = cloud.block_storage.find_volume(identifier) if identifier is not None else None
    return _volume(found) if found is not None else None


def _volume(item: Any) -> VolumeFacts:
    return VolumeFacts(
        size_gib=item.size,
        status=item.status,
        has_system=bool(item.volume_image_metadata),
        kind=item.volume_type or "",
        servers=frozenset(attached["server_id"] for attached in item.attachments or ()),
        cluster=(item.metadata or {}).get(CLUSTER, ""),
    )


def _quotas(cloud: Connection) -> Iterator[tuple[str, Room]]:
    vm = cloud.compute.get_limits().absolute
    yield "instances", _room(vm.instances, vm.instances_used)
    yield "cores", _room(vm.total_cores, vm.total_cores_used)
    yield "memory", _room(vm.total_ram, vm.total_ram_used)
    storage = cloud.block_storage.get_limits().absolute
    yield "volumes", _room(storage.max_total_volumes, storage.total_volumes_used)
    yield "gigabytes", _room(storage.max_total_volume_gigabytes, storage.total_gigabytes_used)
    network = cloud.network.get_quota(cloud.current_project_id or "", details=True)
    for what, room in (
        ("floating addresses", network.floating_ips),
        ("security groups", network.security_groups),
        ("security group rules", network.security_group_rules),
        ("ports", network.ports),
    ):
        yield what, _room(room["limit"], room["used"])


def _room(limit: int, used: int) -> Room:
    """Return a quota. A negative limit means unlimited."""
    return Room(limit=None if limit < 0 else limit, used=used or 0)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
