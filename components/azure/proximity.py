"""A proximity placement group: machines near to each other."""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute

from components.azure.scope import ResourceScope


@dataclass(frozen=True, kw_only=True)
class ProximityGroupArgs:
    """vm_size: machine type that must fit into it. zone: of its machines. None for any."""

    name: str
    scope: ResourceScope
    vm_size: str
    zone: str | None = None


class ProximityGroup(pulumi.ComponentResource):
    """Create a proximity placement group.

    It keeps the pool in one data center. Azure is then more likely to have no capacity, and creating the pool fails.
    InfiniBand does not need it, because a pool is one scale set on one fabric.
    """

    id: pulumi.Output[str]

    def __init__(self, name: str, args: ProximityGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:Placement", name, None, opts)  # type in existing stacks
        group = compute.ProximityPlacementGroup(
            args.name,
            proximity_placement_group_name=args.name,
            **args.scope.arguments(),
            proximity_placement_group_type=compute.ProximityPlacementGroupType.STANDARD,
            intent=compute.ProximityPlacementGroupPropertiesIntentArgs(vm_sizes=[args.vm_size]) if args.zone else None,
            zones=[args.zone] if args.zone else None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.id = group.id
        self.register_outputs({"id": self.id})
