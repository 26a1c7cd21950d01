"""The volume that outlives VMs."""

from dataclasses import dataclass

import pulumi
from pulumi_openstack import blockstorage

from components.openstack import notes


@dataclass(frozen=True, kw_only=True)
class DataVolumeArgs:
    """The arguments of the volume.

    size_gib: size in GiB, may grow later.
    kind: its type, such as standard.
    cluster: the cluster on it, in the format of `cluster_note`, for users who attach the volume later.
    protect: see DataVolume.
    """

    name: str
    size_gib: int
    kind: str
    cluster: str
    protect: bool = True


class DataVolume(pulumi.ComponentResource):
    """Create an empty volume that remains when the stack no longer has it.

    protect: updates and destroys fail instead of deleting or replacing it. Without the protection, the volume and its
    data still remain in the project. Delete it in OpenStack.
    """

    id: pulumi.Output[str]

    def __init__(self, name: str, args: DataVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openstack:DataVolume", name, None, opts)
        volume = blockstorage.Volume(
            name,
            name=args.name,
            description=notes.data_volume(args.name),
            size=args.size_gib,
            volume_type=args.kind,
            metadata={notes.CLUSTER: args.cluster},
            enable_online_resize=True,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect, retain_on_delete=True),
        )
        self.id = volume.id
        self.register_outputs({"id": self.id})
