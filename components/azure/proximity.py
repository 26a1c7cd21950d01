"""A proximity placement group: machines near to each other."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute

from components.azure.scope import ResourceScope


@dataclass(frozen=True, kw_only=True)
class ProximityGroupArgs:
    """name: of the group. vm_size: what is to fit into it. zone: the one of its machines, None for any."""

    name: str
    scope: ResourceScope
    vm_size: str
    zone: str | None = None


class ProximityGroup(pulumi.ComponentResource):
    """Create a proximity placement group.

    It keeps the pool in one data centre, at the price that Azure finds room for it less often: a pool that cannot be
    placed fails. InfiniBand does not need it, for a pool is one scale set on one fabric.
    """

    id: pulumi.Output[str]

    def __init__(self, name: str, args: ProximityGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:Placement", name, None, opts)  # the type that stacks know it by
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
