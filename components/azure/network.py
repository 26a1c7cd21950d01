"""The virtual network of the nodes."""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network

from components.azure.scope import SUBNET, ResourceScope


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """The arguments of the network.

    name: of the virtual network. Its subnet has the name SUBNET.
    cidr, node_cidr: ranges of the network and of its subnet. The second is part of the first.
    """

    name: str
    scope: ResourceScope
    cidr: str
    node_cidr: str


class Network(pulumi.ComponentResource):
    """Create a virtual network with a subnet for the nodes. Pods have their own addresses, in an overlay.

    The subnet's security group has only Azure's default rules: traffic in the network and out of it, none from the
    internet. AKS opens ports only in its own group, so a Service of type LoadBalancer stays closed to the internet
    until a rule is added here. The subnet reaches storage accounts inside Azure's network.
    """

    subnet_id: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:Network", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        guard = network.NetworkSecurityGroup(
            f"{args.name}-nodes",
            network_security_group_name=f"{args.name}-nodes",
            **args.scope.arguments(),
            opts=options,
        )
        net = network.VirtualNetwork(
            args.name,
            virtual_network_name=args.name,
            **args.scope.arguments(),
            address_space=network.AddressSpaceArgs(address_prefixes=[args.cidr]),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["subnets"]),  # the subnet is a separate resource
        )
        subnet = network.Subnet(
            f"{args.name}-nodes-subnet",
            subnet_name=SUBNET,
            virtual_network_name=args.name,
            resource_group_name=args.scope.resource_group,
            address_prefix=args.node_cidr,
            network_security_group=network.NetworkSecurityGroupArgs(id=guard.id),
            service_endpoints=[network.ServiceEndpointPropertiesFormatArgs(service="Microsoft.Storage")],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[net]),
        )
        self.subnet_id = subnet.id
        self.register_outputs({"subnet_id": self.subnet_id})
