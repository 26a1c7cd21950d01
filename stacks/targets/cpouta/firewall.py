"""Rules of the VM's firewall: allowed networks by port."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings.cidr import NOT_PUBLIC, Network, too_many, too_wide, within
from stacks.settings.model import SettingsModel
from stacks.targets.cpouta import values

SSH_PORT: Final = 22
_OWN: Final = "write the address that `curl -4 https://api.ipify.org` prints, followed by /32"


class OpeningSettings(SettingsModel):
    """A port of the VM that a network can connect to."""

    name: values.RuleName
    """Name of the rule."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Number of the TCP port."""
    source: Network
    """Network in CIDR notation."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A network that may connect to a port. path: of the entry below section openstack, with its name as last part."""

    path: Path
    port: int
    source: str


def rules(ssh_from: Mapping[str, str], ports: Sequence[OpeningSettings]) -> list[Rule]:
    """Return all rules of the settings: those of SSH, and then the others."""
    ssh = [Rule(path=("sshFrom", who), port=SSH_PORT, source=source) for who, source in ssh_from.items()]
    return [*ssh, *(Rule(path=("ports", index), port=one.port, source=one.source) for index, one in enumerate(ports))]


def check(path: Path, found: Sequence[Rule], *, allow_any_source: bool, is_public: bool) -> Iterator[ConfigError]:
    """Yield errors of rules that OpenStack rejects, or that allow no client or all.

    path: of section openstack. is_public: the floating address is on the internet.
    """
    ssh = [rule for rule in found if rule.path[0] == "sshFrom"]
    yield from _reachable(path, ssh, is_public=is_public)
    yield from _twice(path, found)
    if not allow_any_source:
        yield from _wide(path, found)


def same_names(path: Path, ports: Sequence[OpeningSettings]) -> Iterator[ConfigError]:
    """Yield errors of ports with duplicate names."""
    names = [opening.name for opening in ports]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield ConfigError((*path, "ports", index, "name"), "another rule has this name", "write another name")


def _reachable(path: Path, ssh: Sequence[Rule], *, is_public: bool) -> Iterator[ConfigError]:
    """Yield errors of sources that cannot connect to the VM's floating IPv4 address."""
    allowed = "public networks, at least one of IPv4, because the VM has a floating IPv4 address"
    if not ssh:
        yield ConfigError(
            (*path, "sshFrom"),
            "no user could sign in, and the stack itself could not connect to the cluster",
            "write the address of the machine that runs the engine, such as me: 203.0.113.7/32",
        )
    inside = [rule for rule in ssh if is_public and within(rule.source, NOT_PUBLIC)]
    for rule in inside:
        yield ConfigError(
            (*path, *rule.path),
            "this private network does not exist on the internet and cannot reach the VM's floating address",
            f"{_OWN}; for VMs in the same network, add an entry of ports with port {SSH_PORT}",
            expected=allowed,
        )
    if ssh and not inside and all(":" in rule.source for rule in ssh):
        yield ConfigError(
            (*path, "sshFrom"),
            "these are only IPv6 networks, and the VM's floating address is IPv4",
            _OWN,
            expected=allowed,
        )


def _twice(path: Path, found: Sequence[Rule]) -> Iterator[ConfigError]:
    """Yield errors of rules that differ only by name, which Neutron ignores.

    Source: neutron, db/securitygroups_db.py, _rule_to_key.
    """
    first: dict[tuple[int, str], Rule] = {}
    for rule in found:
        other = first.setdefault((rule.port, rule.source), rule)
        if other is not rule:
            yield ConfigError(
                (*path, *rule.path),
                f"duplicate rule: {key((*path, *other.path))} already allows this network on port {rule.port}, "
                "and OpenStack rejects a second rule",
                "remove one of them",
            )


def _wide(path: Path, found: Sequence[Rule]) -> Iterator[ConfigError]:
    """Yield errors of ports whose rules together allow almost all addresses."""
    by_port: dict[int, list[Rule]] = {}
    for rule in found:
        by_port.setdefault(rule.port, []).append(rule)
    for together in by_port.values():
        sources = [rule.source for rule in together]
        wide = too_wide(sources)
        if wide or too_many(sources):
            more = "more addresses than a /8 (IPv6: /32)"
            yield ConfigError(
                (*path, together[-1].path[0]),
                f"together these allow {listed(wide) if wide else more}, which is almost everyone",
                "write your own addresses, such as 203.0.113.7/32",
                expected="networks with at most the addresses of a /8 (IPv6: /32) in total, or "
                f"{key((*path, 'allowAnySource'))}: true",
            )
