"""Who may reach the VM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final

import pulumi
from pulumi_openstack import networking

from components.layer import Layer

SSH: Final = 22
SSH_RULE: Final = "SSH from "
"""How the descriptions of the rules begin that let somebody sign in."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A TCP port that a network may reach. cidr: the network."""

    port: int
    cidr: str


@dataclass(frozen=True, kw_only=True)
class FirewallArgs:
    """name: of the security group. ssh: networks that may sign in, by who that is. ports: other openings, by name."""

    name: str
    ssh: Mapping[str, str]
    ports: Mapping[str, Opening] = field(default_factory=dict)


class Firewall(Layer):
    """Create a security group of the VM's own, which lets in nobody but whom its rules name, and lets out everything.

    Each rule is a resource under its own name: an address that changed replaces that rule alone. The new rule is there
    before the old one goes.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to come in."""
    group_id: pulumi.Output[str]

    def __init__(self, name: str, args: FirewallArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openstack:Firewall", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        group = networking.SecGroup(name, name=args.name, description=f"Who may reach {args.name}", opts=options)
        self.ready = [
            _rule(f"ssh-{who}", f"{SSH_RULE}{who}", group, Opening(port=SSH, cidr=cidr), options)
            for who, cidr in args.ssh.items()
        ]
        for what, opening in args.ports.items():
            _rule(f"port-{what}", what, group, opening, options)
        self.group_id = group.id
        self.register_outputs({"group_id": self.group_id})


def _rule(
    name: str, description: str, group: networking.SecGroup, opening: Opening, options: pulumi.ResourceOptions
) -> networking.SecGroupRule:
    return networking.SecGroupRule(
        name,
        security_group_id=group.id,
        description=description,
        direction="ingress",
        ethertype=f"IPv{ip_network(opening.cidr).version}",
        protocol="tcp",
        port_range_min=opening.port,
        port_range_max=opening.port,
        remote_ip_prefix=opening.cidr,
        opts=options,
    )
