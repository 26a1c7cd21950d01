"""Upstream's files that the layers install, read before anything is registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components import catalogue
from components.artifacts import ArtifactError, Mirror, Release
from components.kubernetes.manifests import Document
from components.observability import dashboards
from stacks.inputs import StackInputs


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Upstream's manifests; None, or none, for what is not installed. dashboards: published ones, by their uid."""

    kueue: Release | None = None
    appwrapper: Release | None = None
    scheduler_plugins: Sequence[Release] = ()
    dashboards: Mapping[str, Document] = field(default_factory=dict)


def read(inputs: StackInputs[Any]) -> Releases:
    """Read upstream's files; raises ArtifactError when they cannot be had."""
    queueing, mirror, monitoring = inputs.settings.queueing, inputs.mirror, inputs.settings.monitoring
    shown = _dashboards(mirror) if monitoring.enabled and monitoring.published_dashboards else {}
    if not queueing.enabled:
        return Releases(dashboards=shown)
    return Releases(
        dashboards=shown,
        kueue=mirror.release(catalogue.find(catalogue.KUEUE, queueing.kueue_version)),
        appwrapper=mirror.release(catalogue.find(catalogue.APPWRAPPER, queueing.appwrapper_version)),
        scheduler_plugins=[mirror.release(artifact) for artifact in inputs.settings.scheduling.artifacts()],
    )


def _dashboards(mirror: Mirror) -> Mapping[str, Document]:
    found = {}
    for artifact in catalogue.DASHBOARDS:
        try:
            found[artifact.name] = dashboards.published(artifact.name, mirror.read(artifact))
        except ValueError as error:
            raise ArtifactError(f"{mirror.locate(artifact)}: {error}. Put {artifact.url} there.") from error
    return found
