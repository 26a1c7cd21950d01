"""The resource group that holds everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import resources

from components.layer import Layer


@dataclass(frozen=True, kw_only=True)
class ResourceGroupArgs:
    """name: as Azure has it. location: the region. tags: of the group itself; Azure does not hand them down."""

    name: str
    location: str
    tags: Mapping[str, str] = field(default_factory=dict)


class ResourceGroup(Layer):
    """Create the resource group. Deleting it deletes all that it holds."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create something in the group."""

    def __init__(self, name: str, args: ResourceGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:ResourceGroup", name, None, opts)
        group = resources.ResourceGroup(
            args.name,
            resource_group_name=args.name,
            location=args.location,
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.ready = [group]
        self.register_outputs({"id": group.id})
