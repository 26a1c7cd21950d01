"""The VM, its key and its attached volume."""

from dataclasses import dataclass

import pulumi
from pulumi_openstack import compute

from components.openstack.notes import CLUSTER, IMAGE


@dataclass(frozen=True, kw_only=True)
class MachineArgs:
    """The arguments of a VM.

    name: of the VM and its key pair.
    cluster: the cluster on it, in the format of `cluster_note`.
    image: name of the image that it boots.
    image_id: that image's ID.
    boot_volume_gib: size in GiB of a volume to boot from. None boots from the flavor's disk.
    port_id, volume_id: exist before the VM and remain after it.
    user_data: of its first boot, a secret. A change replaces the VM.
    kept_by: resource that keeps the user data. Its replacement also replaces the VM, because the text does not contain
    all requested values.
    """

    name: str
    flavor: str
    image: pulumi.Input[str]
    image_id: pulumi.Input[str]
    public_key: str
    port_id: pulumi.Input[str]
    volume_id: pulumi.Input[str]
    user_data: pulumi.Input[str]
    kept_by: pulumi.Resource
    cluster: str
    availability_zone: str | None = None
    boot_volume_gib: int | None = None


class Machine(pulumi.ComponentResource):
    """Create the VM with the volume attached.

    Another image, key or user data replaces it. Without that, the provider would write another image over the disk of
    the running VM. The old VM is deleted first, because both have the same port and volume, and the quota is rarely
    enough for two. Another flavor resizes it. The VM is stopped before its deletion, so that its file systems are
    consistent and its volume is detached.
    """

    id: pulumi.Output[str]
    attached: pulumi.Resource
    """Depend on it to use the VM with its volume."""

    def __init__(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openstack:Machine", name, None, opts)
        key = compute.Keypair(
            name,
            name=args.name,
            public_key=args.public_key,
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        instance = compute.Instance(
            name,
            name=args.name,
            flavor_name=args.flavor,
            image_id=args.image_id if args.boot_volume_gib is None else None,
            block_devices=_boot_volume(args.image_id, args.boot_volume_gib),
            key_pair=key.name,
            networks=[compute.InstanceNetworkArgs(port=args.port_id)],
            availability_zone=args.availability_zone,
            metadata={IMAGE: args.image, CLUSTER: args.cluster},
            user_data=pulumi.Output.secret(args.user_data),
            stop_before_destroy=True,
            opts=pulumi.ResourceOptions(
                parent=self,
                replace_on_changes=["imageId"],
                replace_with=[args.kept_by],
                delete_before_replace=True,
            ),
        )
        self.attached = compute.VolumeAttach(
            name,
            instance_id=instance.id,
            volume_id=args.volume_id,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=instance, delete_before_replace=True),
        )
        self.id = instance.id
        self.register_outputs({"id": self.id})


def _boot_volume(image_id: pulumi.Input[str], size_gib: int | None) -> list[compute.InstanceBlockDeviceArgs] | None:
    if size_gib is None:
        return None
    return [
        compute.InstanceBlockDeviceArgs(
            source_type="image",
            uuid=image_id,
            destination_type="volume",
            volume_size=size_gib,
            boot_index=0,
            delete_on_termination=True,
        )
    ]
