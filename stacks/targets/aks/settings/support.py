"""How long AKS supports the Kubernetes version of a stack.

A version past its support is no mistake: AKS creates no cluster of it, and scales and updates those that have it as
before (MicrosoftDocs/azure-aks-docs, articles/aks/supported-kubernetes-versions.md). The program does not see whether
its cluster is there already, so that the passing of a day brings a warning, and takes the updates from nobody. Refused
is what AKS created no cluster of when its calendar was written down, and what it does not have yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from components.azure import versions
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.targets.aks.settings.options import AzureOptions
from stacks.targets.aks.settings.values import LONG_TERM

_PATH: Final[Path] = ("azure", "kubernetesVersion")
_NOTICE: Final = timedelta(days=30)
"""How long before a version's end AKS itself gives notice of it."""


def today() -> date:
    """Return the day on which support of a version is judged."""
    return date.today()


def check(azure: AzureOptions) -> Iterator[ConfigError]:
    """Refuse a version of which AKS creates no cluster, and of which this program cannot have created one."""
    day, long_term = today(), azure.support == LONG_TERM
    release = versions.release_of(azure.kubernetes_version)
    if release is None:
        wrong = "AKS' calendar has no such version"
    elif day < release.available:
        wrong = f"AKS has this version from {release.available} on"
    elif (end := release.last_day(long_term=long_term)) < versions.AS_OF:
        wrong = f"AKS supports this version until {end} only"
    else:
        return
    good = [candidate.minor for candidate in versions.supported(day, long_term=long_term)]
    default = versions.DEFAULT if versions.DEFAULT in good else next(iter(good), versions.DEFAULT)
    yield ConfigError(
        path=_PATH,
        value=azure.kubernetes_version,
        message=wrong,
        expected=f"{listed(good or [default])}, each alone or with a patch (AKS' calendar of {versions.AS_OF})",
        hint=f'set it to "{default}"' + _longer(release, day, long_term=long_term),
    )


def warnings(azure: AzureOptions) -> Iterator[str]:
    """Yield that AKS supports the version no longer, or not for long, and what to do.

    The next version is named and not a newer one: AKS upgrades a cluster by one minor version at a time
    (articles/aks/upgrade-aks-control-plane.md).
    """
    day, long_term = today(), azure.support == LONG_TERM
    release = versions.release_of(azure.kubernetes_version)
    if release is None or day + _NOTICE <= (end := release.last_day(long_term=long_term)):
        return
    newer = [
        candidate.minor for candidate in versions.supported(day, long_term=long_term) if candidate.end > release.end
    ]
    upgrade = (
        f'set it to "{newer[-1]}"' + _longer(release, day, long_term=long_term)
        if newer
        else "take a later release of this program, which knows newer versions"
    )
    yield (
        f"{key(_PATH)} is {azure.kubernetes_version}, which AKS supports until {end} only: afterwards it creates no "
        f"cluster of this version, and one that has it runs on and gets no fixes; {upgrade}"
    )


def _longer(release: versions.KubernetesRelease | None, day: date, *, long_term: bool) -> str:
    """Return how a version may stay, where long-term support still has it."""
    if release is None or long_term or not release.supported(day, long_term=True):
        return ""
    return f", or support to longTerm and tier to Premium, which lasts until {release.long_term_end}"
