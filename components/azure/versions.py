"""The Kubernetes versions that AKS supports, and until when.

Source: the release calendar in `MicrosoftDocs/azure-aks-docs`, articles/aks/supported-kubernetes-versions.md, as of
`AS_OF`. Support ends with the last day of the month it names. Node images: articles/aks/upgrade-os-version.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final


@dataclass(frozen=True, kw_only=True)
class KubernetesRelease:
    """A minor version of Kubernetes on AKS.

    available: first day of the month of general availability. end: last day of support.
    long_term_end: last day of the support that is paid for with the Premium tier.
    """

    minor: str
    available: date
    end: date
    long_term_end: date

    def last_day(self, *, long_term: bool = False) -> date:
        """Return the last day on which AKS creates clusters of this version and patches those that there are."""
        return self.long_term_end if long_term else self.end

    def supported(self, day: date, *, long_term: bool = False) -> bool:
        """Return whether AKS creates clusters of this version on a day."""
        return self.available <= day <= self.last_day(long_term=long_term)


AS_OF: Final = date(2026, 8, 5)
"""The day of the calendar that is written here."""

RELEASES: Final = (
    KubernetesRelease(
        minor="1.37", available=date(2026, 10, 1), end=date(2027, 10, 31), long_term_end=date(2028, 10, 31)
    ),
    KubernetesRelease(minor="1.36", available=date(2026, 6, 1), end=date(2027, 6, 30), long_term_end=date(2028, 6, 30)),
    KubernetesRelease(minor="1.35", available=date(2026, 3, 1), end=date(2027, 3, 31), long_term_end=date(2028, 3, 31)),
    KubernetesRelease(
        minor="1.34", available=date(2025, 11, 1), end=date(2026, 11, 30), long_term_end=date(2027, 11, 30)
    ),
    KubernetesRelease(minor="1.33", available=date(2025, 6, 1), end=date(2026, 7, 31), long_term_end=date(2027, 7, 31)),
    KubernetesRelease(minor="1.32", available=date(2025, 4, 1), end=date(2026, 3, 31), long_term_end=date(2027, 3, 31)),
)
"""Newest first."""

DEFAULT: Final = "1.35"
"""The version before the newest two: a year of patches behind it, and what the pinned operators are released for."""


@dataclass(frozen=True, kw_only=True)
class NodeImage:
    """An operating system of the nodes, as AKS names it, with the minor versions of Kubernetes it is built for."""

    os_sku: str
    first: int
    last: int | None


NODE_IMAGES: Final = (
    NodeImage(os_sku="Ubuntu2204", first=25, last=36),
    NodeImage(os_sku="Ubuntu", first=25, last=None),
)
"""`Ubuntu` means 22.04 up to Kubernetes 1.34, and 24.04 from 1.35 on."""


def release_of(version: str) -> KubernetesRelease | None:
    """Return the release of a version such as 1.35 or 1.35.7, None for one that the calendar does not name."""
    minor = ".".join(version.split(".")[:2])
    return next((release for release in RELEASES if release.minor == minor), None)


def supported(day: date, *, long_term: bool = False) -> Sequence[KubernetesRelease]:
    """Return the releases of which AKS creates clusters on a day, newest first."""
    return [release for release in RELEASES if release.supported(day, long_term=long_term)]
