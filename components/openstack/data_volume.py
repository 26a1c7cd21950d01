"""The volume that outlives VMs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_openstack import blockstorage

from components.openstack import notes


@dataclass(frozen=True, kw_only=True)
class DataVolumeArgs:
    """What to keep.

    name: of the volume. size_gib: may grow later. kind: its type, such as standard. cluster: which one is on
    it, as `cluster_note` writes it, for whoever attaches the volume later. protect: see DataVolume.
    """

    name: str
    size_gib: int
    kind: str
    cluster: str
    protect: bool = True


class DataVolume(pulumi.ComponentResource):
    """Create an empty volume that is kept when the stack no longer has it.

    protect: no update and no destroy may delete it, or replace it, until the protection is taken off; and then, too, it
    stays in the project, with its data, and whoever wants it gone deletes it in OpenStack.
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
