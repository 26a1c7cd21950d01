"""Upstream's files that the layers install, read before anything is registered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components import catalogue
from components.artifacts import Release
from stacks.inputs import StackInputs


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Upstream's manifests; None, or none, for what is not installed."""

    kueue: Release | None = None
    appwrapper: Release | None = None
    scheduler_plugins: Sequence[Release] = ()


def read(inputs: StackInputs[Any]) -> Releases:
    """Read upstream's files; raises ArtifactError when they cannot be had."""
    queueing, mirror = inputs.settings.queueing, inputs.mirror
    if not queueing.enabled:
        return Releases()
    return Releases(
        kueue=mirror.release(catalogue.find(catalogue.KUEUE, queueing.kueue_version)),
        appwrapper=mirror.release(catalogue.find(catalogue.APPWRAPPER, queueing.appwrapper_version)),
        scheduler_plugins=[mirror.release(artifact) for artifact in inputs.settings.scheduling.artifacts()],
    )
