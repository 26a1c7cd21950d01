"""Networks in CIDR notation, alone and as lists: which of them settings refuse, and whom they let in."""

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Final, TypeAlias

from stacks.config.errors import ConfigError, Path
from stacks.settings.model import matching, reject

Addresses: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_NETWORKS: Final = "a network in CIDR notation, such as 10.20.0.0/16 or 2001:db8::/32"
_WIDEST: Final = {4: 8, 6: 32}
"""Shortest prefix of a network that is not next to every address, by the kind of address."""

_PRIVATE: Final = ipaddress.IPv6Network("fc00::/7")
"""What 10.0.0.0/8 is among IPv4's (RFC 4193)."""


def _networks(*texts: str) -> tuple[Addresses, ...]:
    return tuple(map(ipaddress.ip_network, texts))


LOOPBACK: Final = _networks("127.0.0.0/8", "::1/128")
NOT_PUBLIC: Final = (
    *LOOPBACK,
    *_networks(
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "fc00::/7",
        "fe80::/10",
        "ff00::/8",
    ),
)
"""Networks that do not exist on the internet (IANA's registries of special-purpose addresses)."""
DOCUMENTATION: Final = _networks("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
"""Networks of examples (RFC 5737, RFC 3849)."""


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
    is_private = isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_PRIVATE)
    return not is_private and network.prefixlen < _WIDEST[network.version]


def overlapping(network: Addresses, others: Iterable[str]) -> str | None:
    """Return the first of some networks that shares an address with this one."""
    return next((other for other in others if network.overlaps(ipaddress.ip_network(other))), None)


def too_wide(texts: Iterable[str]) -> list[Addresses]:
    """Return the networks that the given ones make together and that are next to every address."""
    return [network for network in _together(texts) if is_too_wide(network)]


def too_many(texts: Iterable[str]) -> bool:
    """Whether networks have more addresses together than the widest one that is not next to every address."""
    widest = dict.fromkeys(_WIDEST, Fraction())
    for network in _together(texts):
        if not _is_subnet(network, _PRIVATE):
            widest[network.version] += Fraction(2) ** (_WIDEST[network.version] - network.prefixlen)
    return any(number > 1 for number in widest.values())


def _together(texts: Iterable[str]) -> list[Addresses]:
    networks = [ipaddress.ip_network(text) for text in texts]
    return [
        *ipaddress.collapse_addresses(network for network in networks if isinstance(network, ipaddress.IPv4Network)),
        *ipaddress.collapse_addresses(network for network in networks if isinstance(network, ipaddress.IPv6Network)),
    ]


def within(text: str, others: Iterable[Addresses]) -> bool:
    """Whether a network lies in one of others."""
    network = ipaddress.ip_network(text)
    return any(_is_subnet(network, other) for other in others)


def _is_subnet(network: Addresses, other: Addresses) -> bool:
    if isinstance(network, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return network.subnet_of(other)
    return (
        isinstance(network, ipaddress.IPv6Network)
        and isinstance(other, ipaddress.IPv6Network)
        and network.subnet_of(other)
    )
