"""Networks in CIDR notation, and which of them settings refuse."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Final, TypeAlias

from stacks.config.errors import ConfigError, Path
from stacks.settings.model import matching, reject

Addresses: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_NETWORKS: Final = "a network in CIDR notation, such as 10.20.0.0/16 or 2001:db8::/32"
WIDEST: Final = {4: 8, 6: 32}
"""Shortest prefix of a network that is not next to every address, by the kind of address."""

PRIVATE: Final = ipaddress.IPv6Network("fc00::/7")
"""What 10.0.0.0/8 is among IPv4's (RFC 4193)."""


def _network(value: str) -> str:
    try:
        loose = ipaddress.ip_network(value, strict=False)
    except ValueError:
        reject("this is not a network", "write an address, a slash and the prefix length", expected=_NETWORKS)
    if isinstance(loose, ipaddress.IPv6Network) and loose.network_address.ipv4_mapped is not None:
        reject("these are IPv4 addresses in IPv6 notation", "write the IPv4 network itself", expected=_NETWORKS)
    if "%" in value:
        reject("a network has no zone", "remove the % and what follows it", expected=_NETWORKS)
    if "/" in value and not value.split("/")[1].isdecimal():
        reject("this is not a prefix length", f"did you mean {loose}?", expected=_NETWORKS)
    if "/" not in value:
        reject("this is an address without a prefix length", f"did you mean {loose}?", expected=_NETWORKS)
    if ipaddress.ip_address(value.split("/")[0]) != loose.network_address:
        reject("this is the address of a machine in a network", f"did you mean {loose}?", expected=_NETWORKS)
    return str(loose)


Network = Annotated[str, matching(_network, r"[0-9a-fA-F:.]+/[0-9]+", _NETWORKS)]
"""A network of either kind of address, as the ipaddress module writes it."""


def refused(
    path: Path, networks: Iterable[str], refusal: Callable[[Addresses], tuple[str, str] | None]
) -> Iterator[ConfigError]:
    """Yield the errors of a list of networks. refusal: problem and fix of one of them, None if it is allowed."""
    for index, text in enumerate(networks):
        if (found := refusal(ipaddress.ip_network(text))) is not None:
            yield ConfigError((*path, index), *found)


def is_too_wide(network: Addresses) -> bool:
    """Whether a network is next to every address there is; all private addresses, such as fd00::/8, are a site's."""
    is_private = isinstance(network, ipaddress.IPv6Network) and network.subnet_of(PRIVATE)
    return not is_private and network.prefixlen < WIDEST[network.version]


def overlapping(network: Addresses, others: Iterable[str]) -> str | None:
    """Return the first of some networks that shares an address with this one."""
    return next((other for other in others if network.overlaps(ipaddress.ip_network(other))), None)
