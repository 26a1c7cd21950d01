"""The container registry, and the right to pull from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import containerregistry

from components.azure import roles
from components.azure.scope import ResourceScope
from components.layer import Layer


@dataclass(frozen=True, kw_only=True)
class RegistryArgs:
    """The arguments of the registry.

    name: unique in all of Azure.
    sku: Basic, Standard or Premium.
    admin_user: enable the registry's shared password, which allows pushing. Nodes never need it.
    """

    name: str
    scope: ResourceScope
    sku: str
    admin_user: bool = False


class Registry(pulumi.ComponentResource):
    """Create the registry for the platform's own images."""

    id: pulumi.Output[str]
    server: str
    """Address for pushing and pulling images."""

    def __init__(self, name: str, args: RegistryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:Registry", name, None, opts)
        registry = containerregistry.Registry(
            args.name,
            registry_name=args.name,
            **args.scope.arguments(),
            sku=containerregistry.SkuArgs(name=args.sku),
            admin_user_enabled=args.admin_user,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.id = registry.id
        self.server = login_server(args.name)
        self.register_outputs({"server": self.server})


@dataclass(frozen=True, kw_only=True)
class RegistryPullArgs:
    """registry_id: resource ID. puller: object ID of the kubelets' identity."""

    name: str
    registry_id: pulumi.Input[str]
    puller: pulumi.Input[str]


class RegistryPull(Layer):
    """Let the nodes pull from the registry, as `az aks create --attach-acr` does."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to run an image of the registry. The role may take minutes to apply, and kubelets retry."""

    def __init__(self, name: str, args: RegistryPullArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:RegistryPull", name, None, opts)
        role = roles.assign(
            f"{args.name}-pull",
            role=roles.ACR_PULL,
            scope=args.registry_id,
            principal=args.puller,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.ready = [role]
        self.register_outputs({})


def login_server(name: str) -> str:
    """Return a registry's address in Azure's public cloud. It is always in lower case."""
    return f"{name.lower()}.azurecr.io"
