"""Creates the OpenStack resources of target `cpouta`, in the order of their dependencies."""

import asyncio
from dataclasses import dataclass

import pulumi

from components.openstack.access import RemoteCluster, RemoteClusterArgs
from components.openstack.address import Address, AddressArgs
from components.openstack.data_volume import DataVolume, DataVolumeArgs
from components.openstack.firewall import Firewall, FirewallArgs, Opening
from components.openstack.first_boot import FirstBootArgs, HostKey, KeptUserData, KeptUserDataArgs, KindArgs
from components.openstack.host_key import host_key
from components.openstack.machine import Machine, MachineArgs
from components.openstack.provider import AUTH_URL, openstack_provider
from stacks.targets.cpouta import ownership, support
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import CpoutaSettings, GpuStackSettings, OpenstackSettings


@dataclass(frozen=True, kw_only=True)
class Infrastructure:
    """The VM and the cluster on it.

    address: the VM's floating address. host_key: of its SSH server. volume_id: of the volume with the cluster.
    cluster: access to it, after the first boot.
    """

    address: pulumi.Output[str]
    host_key: HostKey
    volume_id: pulumi.Input[str]
    cluster: RemoteCluster


def create(settings: CpoutaSettings, facts: ProjectFacts | None) -> Infrastructure:
    """Register the VM and its resources. facts: about the project, None in a preview if the project did not answer.

    Raises pulumi.RunError if another stack has the name.
    """
    openstack = settings.openstack
    ownership.check(openstack, facts)
    provider = openstack_provider("openstack", auth_url=None if facts is not None else AUTH_URL)
    within = pulumi.ResourceOptions(providers=[provider])
    firewall = Firewall(
        "firewall",
        FirewallArgs(
            name=openstack.name,
            owner=ownership.stack(),
            ssh=openstack.ssh_from,
            ports={one.name: Opening(port=one.port, cidr=one.source) for one in openstack.ports},
        ),
        within,
    )
    address = Address(
        "address",
        AddressArgs(
            name=openstack.name,
            network_id=_known(facts.networks.get(openstack.network) if facts is not None else None),
            pool=openstack.pool,
            group_id=firewall.group_id,
        ),
        within,
    )
    volume_id = openstack.volume.existing or _volume(openstack, within)
    key = host_key("host-key")
    image_id = _known(facts.images.get(openstack.image) if facts is not None else None)
    given = KeptUserData("user-data", _user_data(settings, key, volume_id, image_id))
    if facts is not None and facts.server is not None:
        given.versions.apply(lambda found: [*map(pulumi.log.warn, support.kept(openstack, found))])
    machine = Machine(
        "machine",
        MachineArgs(
            name=openstack.name,
            flavor=openstack.machine.name,
            image=given.asked["image"],
            image_id=given.image_id,
            public_key=openstack.ssh_public_key,
            port_id=address.port_id,
            volume_id=volume_id,
            user_data=given.text,
            kept_by=given,
            cluster=openstack.kind.note,
            availability_zone=openstack.availability_zone,
            boot_volume_gib=openstack.boot_volume,
        ),
        within,
    )
    cluster = RemoteCluster(
        "cluster",
        RemoteClusterArgs(
            address=address.address,
            user=openstack.user,
            private_key_file=openstack.private_key_file,
            host_key_public=key.public,
            vm=machine.id,
            timeout_seconds=openstack.first_boot_minutes * 60,
            api_port=openstack.kind.api_port,
        ),
        pulumi.ResourceOptions(depends_on=[machine.attached, address.reachable, *firewall.ready]),
    )
    return Infrastructure(address=address.address, host_key=key, volume_id=volume_id, cluster=cluster)


def _user_data(
    settings: CpoutaSettings, key: HostKey, volume_id: pulumi.Input[str], image_id: pulumi.Input[str]
) -> KeptUserDataArgs:
    """Return the user data, with everything that causes a replacement of the VM."""
    openstack = settings.openstack
    return KeptUserDataArgs(
        first_boot=_first_boot(settings, key, volume_id),
        image_id=image_id,
        renewal="mlbatch:openstack.generation",
        others={
            "availabilityZone": openstack.availability_zone or "",
            "bootVolume": str(openstack.boot_volume or ""),
            "flavor": openstack.machine.resized_within,
            "generation": str(openstack.generation),
            "image": openstack.image,
            "name": openstack.name,
            "network": openstack.network,
        },
        defaults=[
            *(["image"] if "image" not in openstack.model_fields_set else []),
            *(
                f"gpu.{name}"
                for name in GpuStackSettings.model_fields
                if openstack.gpu is None or name not in openstack.gpu.model_fields_set
            ),
        ],
    )


def _first_boot(settings: CpoutaSettings, key: HostKey, volume_id: pulumi.Input[str]) -> FirstBootArgs:
    openstack = settings.openstack
    stack, kind = openstack.gpu_stack, openstack.kind
    return FirstBootArgs(
        user=openstack.user,
        authorized_key=openstack.ssh_public_key,
        other_keys=openstack.other_public_keys,
        host_key=key,
        volume_id=volume_id,
        gpu=stack,
        kind=KindArgs(
            node_image=kind.node_image,
            api_port=kind.api_port,
            recreate=kind.recreate,
        ),
    )


def _volume(openstack: OpenstackSettings, options: pulumi.ResourceOptions) -> pulumi.Output[str]:
    volume = openstack.volume
    args = DataVolumeArgs(
        name=openstack.name,
        size_gib=volume.size,
        kind=volume.type,
        cluster=openstack.kind.note,
        protect=volume.protect,
    )
    return DataVolume("data", args, options).id


def _known(identifier: str | None) -> pulumi.Input[str]:
    """Return an ID, or a placeholder in a preview."""
    if identifier is not None:
        return identifier
    value: asyncio.Future[str] = asyncio.Future()
    value.set_result("")
    is_known: asyncio.Future[bool] = asyncio.Future()
    is_known.set_result(False)
    return pulumi.Output(set(), value, is_known)
