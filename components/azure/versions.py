"""The Kubernetes versions that AKS supports, and until when, from versions.yaml."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class KubernetesRelease:
    """A minor version of Kubernetes on AKS.

    available: first day of the month of general availability.
    end: last day of support.
    long_term_end: last day of long-term support, which needs the Premium tier.
    """

    minor: str
    available: date
    end: date
    long_term_end: date

    def last_day(self, *, long_term: bool = False) -> date:
        """Return the last day when AKS creates clusters of this version and patches existing ones."""
        return self.long_term_end if long_term else self.end

    def supported(self, day: date, *, long_term: bool = False) -> bool:
        """Return whether AKS creates clusters of this version on a day."""
        return self.available <= day <= self.last_day(long_term=long_term)


@dataclass(frozen=True, kw_only=True)
class NodeImage:
    """An operating system of the nodes, with AKS's name and the minor versions of Kubernetes that it supports."""

    os_sku: str
    first: int
    last: int | None


class _Versions(Table):
    as_of: date
    default: str
    releases: tuple[KubernetesRelease, ...]
    node_images: tuple[NodeImage, ...]


_VERSIONS: Final = _Versions.load(__name__)
AS_OF: Final = _VERSIONS.as_of
"""The day of the calendar."""
DEFAULT: Final = _VERSIONS.default
RELEASES: Final = _VERSIONS.releases
NODE_IMAGES: Final = _VERSIONS.node_images


def release_of(version: str) -> KubernetesRelease | None:
    """Return the release of a version such as 1.35 or 1.35.7, or None if the calendar does not have it."""
    minor = ".".join(version.split(".")[:2])
    return next((release for release in RELEASES if release.minor == minor), None)


def supported(day: date, *, long_term: bool = False) -> Sequence[KubernetesRelease]:
    """Return the releases that AKS creates clusters of on a day, newest first."""
    return [release for release in RELEASES if release.supported(day, long_term=long_term)]
