"""Upstream's files that the layers install, read before anything is registered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components import catalogue
from components.artifacts import ArtifactError, Mirror, Release
from components.catalogue import Artifact, Repository
from components.kubernetes import kustomize
from components.kubernetes.kustomize import KustomizeError
from components.kubernetes.manifests import Document
from components.mlops import pipelines
from components.observability import dashboards
from stacks.config.inputs import StackInputs

_DEPLOYMENTS = "deployment/"
"""The folder of the OSS MLOps platform that is installed from."""


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Upstream's manifests; None, or none, for what is not installed. dashboards: published ones, by their uid.

    mlops: what the deployment of the OSS MLOps platform renders to.
    """

    kueue: Release | None = None
    appwrapper: Release | None = None
    scheduler_plugins: Sequence[Release] = ()
    dashboards: Mapping[str, Document] = field(default_factory=dict)
    job_set: Release | None = None
    training_operator: Release | None = None
    trainer_kinds: Sequence[Release] = ()
    ray_kinds: Sequence[Release] = ()
    ray_role: Release | None = None
    mlops: str | None = None


def read(inputs: StackInputs[Any]) -> Releases:
    """Read upstream's files; raises ArtifactError when they cannot be had."""
    queueing, mirror, monitoring = inputs.settings.queueing, inputs.mirror, inputs.settings.monitoring
    shown, rendered = _dashboards(monitoring.artifacts(), mirror), _mlops(inputs)
    if not queueing.enabled:
        return Releases(dashboards=shown, mlops=rendered)
    installs, running = inputs.resolved.installs_operators, inputs.resolved.running_kueue
    wanted = queueing.artifacts(kueue=running is None) if installs else ()
    found = {artifact.name: mirror.release(artifact) for artifact in wanted}
    return Releases(
        dashboards=shown,
        mlops=rendered,
        kueue=found.get(catalogue.KUEUE),
        appwrapper=found.get(catalogue.APPWRAPPER),
        scheduler_plugins=[
            mirror.release(artifact)
            for artifact in inputs.settings.scheduling.artifacts(inputs.resolved.scheduler_version)
        ],
        job_set=found.get(catalogue.JOB_SET),
        training_operator=found.get(catalogue.TRAINING_OPERATOR),
        trainer_kinds=[found[name] for name in catalogue.TRAINER_KINDS if name in found],
        ray_kinds=[found[name] for name in catalogue.RAY_KINDS if name in found],
        ray_role=found.get(catalogue.RAY_ROLE),
    )


def _dashboards(wanted: Sequence[Artifact], mirror: Mirror) -> Mapping[str, Document]:
    found = {}
    for artifact in wanted:
        try:
            found[artifact.name] = dashboards.published(artifact.name, mirror.read(artifact))
        except ValueError as error:
            raise ArtifactError(f"{mirror.locate(artifact)}: {error}. Put {artifact.url} there.") from error
    return found


def _mlops(inputs: StackInputs[Any]) -> str | None:
    """Return what its deployment renders to, None where it is not wanted; raises ArtifactError."""
    settings, mirror = inputs.settings.mlops, inputs.mirror
    if not settings.enabled:
        return None
    files = _files(mirror, settings.source, _DEPLOYMENTS)
    for repository in settings.pipelines:
        files = pipelines.replaced(files, _files(mirror, repository, pipelines.FOLDER))
    try:
        return kustomize.render(files, settings.deployment.folder)
    except KustomizeError as error:
        where, overlay = mirror.locate(settings.source.archive), settings.deployment.overlay
        raise ArtifactError(f"{where}: the deployment {overlay} cannot be rendered: {error}") from error


def _files(mirror: Mirror, source: Repository, folder: str) -> Mapping[str, bytes]:
    """Return the files of a repository's folder after a check of their digest. Raises ArtifactError."""
    where = mirror.locate(source.archive)
    try:
        unpacked = kustomize.unpacked(mirror.fetch(source.archive))
    except KustomizeError as error:
        raise ArtifactError(f"{where}: {error}") from error
    files = {name: content for name, content in unpacked.items() if name.startswith(folder)}
    if mirror.verify and (found := kustomize.digest(files)) != source.content:
        raise ArtifactError(
            f"{where}: the files in {folder} have the digest {found}, and {source.content} is expected of "
            f"{source.url} at {source.commit}"
        )
    return files
