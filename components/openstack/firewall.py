"""Who may reach the VM."""

from __future__ import annotations

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
    """A TCP port that a network may reach. cidr: the network."""

    port: int
    cidr: str


@dataclass(frozen=True, kw_only=True)
class FirewallArgs:
    """name: of the security group, owner: whose it is.

    ssh: networks that may sign in, by who that is. ports: other openings, by name. No two of the same port and network.
    """

    name: str
    owner: str
    ssh: Mapping[str, str]
    ports: Mapping[str, Opening] = field(default_factory=dict)


class Firewall(Layer):
    """Create a security group of the VM's own, which lets in nobody but whom its rules name, and lets out everything.

    Each rule is a resource under the name of its port and network, which is what Neutron knows a rule by: it refuses a
    second one of the same, whatever the description says (neutron/db/securitygroups_db.py, `_rule_to_key`), and the
    engine makes what is new before it deletes what is old. An address that changed is one rule made and one deleted;
    a name that changed is nothing at all.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to come in."""
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
    """Why there is a rule. former: the name of its resource in stacks that named it by this."""

    description: str
    former: str


def _wanted(args: FirewallArgs) -> Mapping[Opening, _Reason]:
    """Return each rule with what asks for it."""
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
            # A rule has no update, and the one in its place would be a second one of the same.
            ignore_changes=["description"],
            aliases=[pulumi.Alias(name=reason.former)],
        ),
    )
