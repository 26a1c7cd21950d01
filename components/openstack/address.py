"""The VM's address, which remains when the VM is replaced."""

from dataclasses import dataclass

import pulumi
from pulumi_openstack import networking

from components.openstack import notes


@dataclass(frozen=True, kw_only=True)
class AddressArgs:
    """pool: the external network. group_id: the security group."""

    name: str
    network_id: pulumi.Input[str]
    pool: str
    group_id: pulumi.Input[str]


class Address(pulumi.ComponentResource):
    """Create a network port with a floating IP. A replacement VM takes the port and thereby the address."""

    port_id: pulumi.Output[str]
    address: pulumi.Output[str]
    reachable: pulumi.Resource
    """Depend on it to reach the address."""

    def __init__(self, name: str, args: AddressArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openstack:Address", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        port = networking.Port(
            name,
            name=args.name,
            network_id=args.network_id,
            admin_state_up=True,
            security_group_ids=[args.group_id],
            opts=options,
        )
        floating = networking.FloatingIp(name, pool=args.pool, description=notes.address(args.name), opts=options)
        self.reachable = networking.FloatingIpAssociate(
            name, floating_ip=floating.address, port_id=port.id, opts=options
        )
        self.port_id = port.id
        self.address = floating.address
        self.register_outputs({"port_id": self.port_id, "address": self.address})
