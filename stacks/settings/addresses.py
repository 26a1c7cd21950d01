"""Networks as a whole: whom a list of them lets in."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final

from stacks.settings.cidr import PRIVATE, WIDEST, Addresses, is_too_wide

LOOPBACK: Final = tuple(ip_network(text) for text in ("127.0.0.0/8", "::1/128"))
NOT_PUBLIC: Final = (
    *LOOPBACK,
    *(
        ip_network(text)
        for text in (
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
        )
    ),
)
"""Networks that do not exist on the internet (IANA's registries of special-purpose addresses)."""

DOCUMENTATION: Final = tuple(
    ip_network(text) for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)
"""Networks of examples (RFC 5737, RFC 3849)."""


def too_wide(texts: Iterable[str]) -> list[Addresses]:
    """Return the networks that the given ones make together and that are next to every address."""
    return [network for network in _together(texts) if is_too_wide(network)]


def too_many(texts: Iterable[str]) -> bool:
    """Whether networks have more addresses together than the widest one that is not next to every address."""
    widest = dict.fromkeys(WIDEST, Fraction())
    for network in _together(texts):
        if not _is_subnet(network, PRIVATE):
            widest[network.version] += Fraction(2) ** (WIDEST[network.version] - network.prefixlen)
    return any(number > 1 for number in widest.values())


def _together(texts: Iterable[str]) -> list[Addresses]:
    networks = [ip_network(text) for text in texts]
    return [
        *collapse_addresses(network for network in networks if isinstance(network, IPv4Network)),
        *collapse_addresses(network for network in networks if isinstance(network, IPv6Network)),
    ]


def within(text: str, others: Iterable[Addresses]) -> bool:
    """Whether a network lies in one of others."""
    network = ip_network(text)
    return any(_is_subnet(network, other) for other in others)


def _is_subnet(network: Addresses, other: Addresses) -> bool:
    if isinstance(network, IPv4Network) and isinstance(other, IPv4Network):
        return network.subnet_of(other)
    return isinstance(network, IPv6Network) and isinstance(other, IPv6Network) and network.subnet_of(other)
