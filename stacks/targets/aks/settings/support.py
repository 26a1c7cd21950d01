"""How long AKS supports the Kubernetes version of a stack.

A version without support is not an error: AKS does not create clusters with it, but scales and updates existing ones
(MicrosoftDocs/azure-aks-docs, articles/aks/supported-kubernetes-versions.md). The program does not know whether its
cluster exists. The end of support therefore causes a warning and does not block updates. An error reports only versions
that AKS did not support when the calendar was recorded, or does not have yet.
"""

from collections.abc import Iterator
from datetime import date
from typing import Final

from components.azure import versions
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings import support_end
from stacks.targets.aks.settings.options import AzureOptions
from stacks.targets.aks.settings.values import LONG_TERM

_PATH: Final[Path] = ("azure", "kubernetesVersion")


def check(azure: AzureOptions) -> Iterator[ConfigError]:
    """Reject a version that AKS does not support and that this program cannot have used for a cluster."""
    day, long_term = support_end.today(), azure.support == LONG_TERM
    release = versions.release_of(azure.kubernetes_version)
    if release is None:
        wrong = "AKS' calendar does not have this version"
    elif day < release.available:
        wrong = f"AKS has this version from {release.available} on"
    elif (end := release.last_day(long_term=long_term)) < versions.AS_OF:
        wrong = f"AKS supports this version until {end} only"
    else:
        return
    good = [candidate.minor for candidate in versions.supported(day, long_term=long_term)]
    default = versions.DEFAULT if versions.DEFAULT in good else next(iter(good), versions.DEFAULT)
    yield ConfigError(
        _PATH,
        wrong,
        f'set it to "{default}"' + _longer(release, day, long_term=long_term),
        expected=f"{listed(good or [default])}, each alone or with a patch (AKS' calendar of {versions.AS_OF})",
    )


def warnings(azure: AzureOptions) -> Iterator[str]:
    """Yield a warning that support of the version has ended or ends soon, with the fix.

    The fix names the next version, because AKS upgrades a cluster by one minor version at a time
    (articles/aks/upgrade-aks-control-plane.md).
    """
    day, long_term = support_end.today(), azure.support == LONG_TERM
    release = versions.release_of(azure.kubernetes_version)
    if release is None or not support_end.ends_soon(end := release.last_day(long_term=long_term)):
        return
    newer = [
        candidate.minor for candidate in versions.supported(day, long_term=long_term) if candidate.end > release.end
    ]
    upgrade = (
        f'set it to "{newer[-1]}"' + _longer(release, day, long_term=long_term)
        if newer
        else "use a later release of this program, which supports newer versions"
    )
    yield (
        f"{key(_PATH)} is {azure.kubernetes_version}, which AKS supports until {end}. After that, AKS does not create "
        f"clusters with this version, and existing ones get no fixes; {upgrade}"
    )


def _longer(release: versions.KubernetesRelease | None, day: date, *, long_term: bool) -> str:
    """Return how to keep a version with long-term support, or an empty text if that has ended."""
    if release is None or long_term or not release.supported(day, long_term=True):
        return ""
    return f", or support to longTerm and tier to Premium, which lasts until {release.long_term_end}"
