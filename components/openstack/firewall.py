"""The networks that may reach the VM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final

import pulumi
from pulumi_openstack import networking

from components.layer import Layer
from components.openstack import notes

SSH: Final = 22


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A TCP port and a network, in CIDR notation, that may reach it."""

    port: int
    cidr: str


@dataclass(frozen=True, kw_only=True)
class FirewallArgs:
    """The arguments of the security group.

    owner: the stack that it belongs to.
    ssh: networks that may sign in, by the name of their user.
    ports: other openings, by name. Each pair of port and network must be unique.
    """

    name: str
    owner: str
    ssh: Mapping[str, str]
    ports: Mapping[str, Opening] = field(default_factory=dict)


class Firewall(Layer):
    """Create the VM's security group. It allows connections only from its rules, and all outgoing connections.

    Each rule is a resource named after its port and network. Neutron identifies a rule by these and rejects a second
    one, even with another description (neutron/db/securitygroups_db.py, `_rule_to_key`). The engine creates new
    resources before it deletes old ones. A changed address therefore creates one rule and deletes one. A changed name
    has no effect.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to connect to the VM."""
    group_id: pulumi.Output[str]

    def __init__(self, name: str, args: FirewallArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openstack:Firewall", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        text = notes.firewall(args.name, args.owner)
        group = networking.SecGroup(name, name=args.name, description=text, opts=options)
        rules = {rule: _rule(rule, reason, group, self) for rule, reason in _wanted(args).items()}
        self.ready = [made for rule, made in rules.items() if rule.port == SSH]
        self.group_id = group.id
        self.register_outputs({"group_id": self.group_id})


@dataclass(frozen=True, kw_only=True)
class _Reason:
    """Why a rule exists. former: name of its resource in older stacks."""

    description: str
    former: str


def _wanted(args: FirewallArgs) -> Mapping[Opening, _Reason]:
    """Return each rule with the setting that requires it."""
    wanted = {
        _canonical(SSH, cidr): _Reason(description=f"{notes.SSH_RULE}{who}", former=f"ssh-{who}")
        for who, cidr in args.ssh.items()
    }
    for what, opening in args.ports.items():
        wanted[_canonical(opening.port, opening.cidr)] = _Reason(description=what, former=f"port-{what}")
    return wanted


def _canonical(port: int, cidr: str) -> Opening:
    return Opening(port=port, cidr=str(ip_network(cidr)))


def _rule(
    opening: Opening, reason: _Reason, group: networking.SecGroup, parent: pulumi.Resource
) -> networking.SecGroupRule:
    return networking.SecGroupRule(
        # Two colons would end the name in a URN.
        f"tcp-{opening.port}-{opening.cidr.replace(':', '-')}",
        security_group_id=group.id,
        description=reason.description,
        direction="ingress",
        ethertype=f"IPv{ip_network(opening.cidr).version}",
        protocol="tcp",
        port_range_min=opening.port,
        port_range_max=opening.port,
        remote_ip_prefix=opening.cidr,
        opts=pulumi.ResourceOptions(
            parent=parent,
            # A rule cannot be updated, and its replacement would be a duplicate.
            ignore_changes=["description"],
            aliases=[pulumi.Alias(name=reason.former)],
        ),
    )
