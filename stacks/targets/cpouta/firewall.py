"""Rules of the VM's firewall: who may come in, and by which port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings.addresses import NOT_PUBLIC, too_many, too_wide, within
from stacks.settings.cidr import Network
from stacks.settings.model import SettingsModel
from stacks.targets.cpouta import values

SSH_PORT: Final = 22
_OWN: Final = "write the address that `curl -4 https://api.ipify.org` prints, with /32 behind it"


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
    """A network that may reach a port. path: of the entry below section openstack, whose last part names it."""

    path: Path
    port: int
    source: str


def rules(ssh_from: Mapping[str, str], ports: Sequence[OpeningSettings]) -> list[Rule]:
    """Return all rules of the settings: those of SSH, and then the others."""
    ssh = [Rule(path=("sshFrom", who), port=SSH_PORT, source=source) for who, source in ssh_from.items()]
    return [*ssh, *(Rule(path=("ports", index), port=one.port, source=one.source) for index, one in enumerate(ports))]


def check(path: Path, found: Sequence[Rule], *, allow_any_source: bool) -> Iterator[ConfigError]:
    """Yield rules that OpenStack refuses, that let in nobody, or that let in everybody. path: of section openstack."""
    ssh = [rule for rule in found if rule.path[0] == "sshFrom"]
    yield from _reachable(path, ssh)
    yield from _twice(path, found)
    if not allow_any_source:
        yield from _wide(path, found)


def same_names(path: Path, ports: Sequence[OpeningSettings]) -> Iterator[ConfigError]:
    """Yield entries of ports that have another one's name."""
    names = [opening.name for opening in ports]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield ConfigError(
                path=(*path, "ports", index, "name"),
                value=name,
                message="another rule has this name",
                expected="each name once",
                hint="write another name",
            )


def _reachable(path: Path, ssh: Sequence[Rule]) -> Iterator[ConfigError]:
    """Yield sources from which nobody reaches the VM's floating address, which is one of IPv4."""
    allowed = "networks as the internet sees them, one of IPv4 among them: the VM has a floating address of IPv4"
    if not ssh:
        yield ConfigError(
            path=(*path, "sshFrom"),
            value={},
            message="nobody could sign in, and the stack itself could not reach the cluster",
            expected="at least one network",
            hint="write the address of the machine that runs the engine, such as me: 203.0.113.7/32",
        )
    inside = [rule for rule in ssh if within(rule.source, NOT_PUBLIC)]
    for rule in inside:
        yield ConfigError(
            path=(*path, *rule.path),
            value=rule.source,
            message="nobody comes to the VM's floating address from this network: it is none of the internet",
            expected=allowed,
            hint=f"{_OWN}; for VMs of the same network write an entry of ports with port {SSH_PORT}",
        )
    if ssh and not inside and all(":" in rule.source for rule in ssh):
        yield ConfigError(
            path=(*path, "sshFrom"),
            value=[rule.source for rule in ssh],
            message="these are IPv6 alone, and the VM's floating address is one of IPv4",
            expected=allowed,
            hint=_OWN,
        )


def _twice(path: Path, found: Sequence[Rule]) -> Iterator[ConfigError]:
    """Yield rules that differ from another one by their name alone, which Neutron leaves out of account.

    Source: neutron, db/securitygroups_db.py, _rule_to_key.
    """
    first: dict[tuple[int, str], Rule] = {}
    for rule in found:
        other = first.setdefault((rule.port, rule.source), rule)
        if other is not rule:
            yield ConfigError(
                path=(*path, *rule.path),
                value=rule.source,
                message=f"{key((*path, *other.path))} lets in the same network by port {rule.port} already, and "
                "OpenStack refuses a second rule of it",
                expected="each network once for a port",
                hint="remove one of them",
            )


def _wide(path: Path, found: Sequence[Rule]) -> Iterator[ConfigError]:
    """Yield the ports that next to everybody may reach, by all rules of a port together."""
    by_port: dict[int, list[Rule]] = {}
    for rule in found:
        by_port.setdefault(rule.port, []).append(rule)
    for together in by_port.values():
        sources = [rule.source for rule in together]
        wide = too_wide(sources)
        if wide or too_many(sources):
            more = "more than a /8 (IPv6: /32) has"
            yield ConfigError(
                path=(*path, together[-1].path[0]),
                value=sources,
                message=f"together these let in {listed(wide) if wide else more}, which is next to everybody",
                expected="networks of no more than a /8 (IPv6: /32) together, or "
                f"{key((*path, 'allowAnySource'))}: true",
                hint="write the addresses of your own, such as 203.0.113.7/32",
            )
