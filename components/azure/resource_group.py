"""The resource group of all other resources."""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import resources

from components.azure.scope import ResourceScope
from components.layer import Layer


@dataclass(frozen=True, kw_only=True)
class ResourceGroupArgs:
    """scope: scope of the resources in the group."""

    scope: ResourceScope


class ResourceGroup(Layer):
    """Create the resource group. Deleting it deletes all its resources."""

    id: pulumi.Output[str]

    def __init__(self, name: str, args: ResourceGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:ResourceGroup", name, None, opts)
        group = resources.ResourceGroup(
            args.scope.resource_group,
            **args.scope.arguments(),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.id = group.id
        self.ready = [group]
        self.register_outputs({"id": self.id})
