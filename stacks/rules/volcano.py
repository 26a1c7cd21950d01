"""Rules for Volcano: whose namespace its jobs run in, and which clusters its chart is made for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from components.compatibility import VOLCANO_KUBERNETES
from stacks.problems import Problem, key, listed
from stacks.reading import Parts

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with Volcano's settings."""
    settings = parts.volcano
    if settings is None:
        return
    if not _NAME.fullmatch(settings.queue):
        yield Problem(
            path=("volcano", "queue"),
            value=settings.queue,
            wrong="Kubernetes would reject this name",
            allowed="at most 63 of a-z, 0-9 and -, with a letter or digit first and last",
            fix="for example workloads",
        )
    if settings.enabled and parts.azure is not None:
        problem = version_problem(settings.version, parts.azure.kubernetes_version)
        if problem is not None:
            yield problem


def too_new(version: str, kubernetes: str) -> str | None:
    """Return which Kubernetes version a Volcano chart ends at, None where it is made for the given one as well.

    kubernetes: with or without the patch version, such as 1.34 or 1.34.2.
    """
    minor = tuple(int(part) for part in kubernetes.split(".")[:2])
    newest = VOLCANO_KUBERNETES[version]
    return None if minor <= newest else ".".join(str(part) for part in newest)


def version_problem(version: str, kubernetes: str) -> Problem | None:
    """Return the problem of a chart that is not made for a cluster's Kubernetes version."""
    newest = too_new(version, kubernetes)
    if newest is None:
        return None
    suited = [known for known in VOLCANO_KUBERNETES if too_new(known, kubernetes) is None]
    return Problem(
        path=("volcano", "version"),
        value=version,
        wrong=f"Volcano {version} is made for Kubernetes up to {newest}, and this cluster has {kubernetes}",
        allowed=listed(suited),
        fix=f"set {key(('volcano', 'version'))} to {suited[0]}" if suited else "take an older Kubernetes version",
    )
