"""Where the catalogue's bytes come from: a mirror's folder, a mirror's address, or upstream itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from components.catalogue import Artifact, Chart

_TIMEOUT = 30.0
"""Seconds for each answer of a server that holds artifacts."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """What a component installs of an upstream: the text of its manifest file, and its images by container name."""

    manifest: str
    images: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class LocatedChart:
    """A chart and where it is read from.

    chart: the chart's name in its repository, or the archive's file or address where there is a mirror.
    repository: None where `chart` says it all. values: those by which its images come from a mirror.
    """

    name: str
    chart: str
    version: str
    repository: str | None
    values: Mapping[str, Any] = field(default_factory=dict)


class ArtifactError(RuntimeError):
    """An artifact cannot be had or is not what the catalogue says; the message names it and what to do."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """A site's own copies of what upstreams publish.

    artifacts: an absolute folder, or an https address without trailing slash, that holds `<name>-<version>.yaml`
        files; None for upstream.
    charts: the same for `<name>-<version>.tgz` files, which the Kubernetes provider reads.
    images: a registry prefix that takes the place of the registry host of each image, those of charts among them; None
        for upstream.
    verify: whether the files must have the catalogue's digests; a mirror of files that were rendered from upstream's
        source, rather than copied, cannot have them.
    """

    artifacts: str | None = None
    charts: str | None = None
    images: str | None = None
    verify: bool = True

    def locate(self, artifact: Artifact) -> str:
        """Return the file or the address that an artifact is read from."""
        if self.artifacts is None:
            return artifact.url
        if self.artifacts.startswith("https://"):
            return f"{self.artifacts}/{artifact.file}"
        return str(Path(self.artifacts) / artifact.file)

    def release(self, artifact: Artifact) -> Release:
        """Return an artifact with its images as they are pulled; raises ArtifactError as `read` does."""
        images = {container: self.image(reference) for container, reference in artifact.images.items()}
        return Release(manifest=self.read(artifact), images=images)

    def chart(self, chart: Chart) -> LocatedChart:
        """Return where a chart is read from: the mirror's archive, else upstream's repository."""
        name, repository = chart.name, None
        if self.charts is not None:
            name = f"{self.charts}/{chart.file}"
        elif chart.repository.startswith("oci://"):
            name = f"{chart.repository}/{chart.name}"
        else:
            repository = chart.repository
        return LocatedChart(
            name=chart.name,
            chart=name,
            version=chart.version,
            repository=repository,
            values=self._image_values(chart),
        )

    def read(self, artifact: Artifact) -> str:
        """Return an artifact's text.

        Raises ArtifactError when it is absent, cannot be fetched within bounds, or has another digest than recorded.
        """
        content = self.fetch(artifact)
        digest = hashlib.sha256(content).hexdigest()
        if self.verify and artifact.sha256 is not None and digest != artifact.sha256:
            raise ArtifactError(
                f"{self.locate(artifact)} is not {artifact.name} {artifact.version}: its sha256 is {digest}, "
                f"the catalogue has {artifact.sha256}. Fetch it again from {artifact.url}."
            )
        return content.decode()

    def fetch(self, artifact: Artifact) -> bytes:
        """Return an artifact's bytes as they are; raises ArtifactError when they cannot be had."""
        location = self.locate(artifact)
        return _fetch(location, artifact) if location.startswith("https://") else _load(Path(location), artifact)

    def image(self, reference: str) -> str:
        """Return the reference under which an image is pulled: `<prefix>/<path>` in place of `<host>/<path>`."""
        if self.images is None:
            return reference
        _, _, path = reference.partition("/")
        return f"{self.images}/{path}"

    def _image_values(self, chart: Chart) -> Mapping[str, Any]:
        values: dict[str, Any] = {}
        for path, upstream in chart.registries.items() if self.images is not None else ():
            *sections, last = path.split(".")
            at = values
            for section in sections:
                at = at.setdefault(section, {})
            at[last] = f"{self.images}/{upstream}".rstrip("/")
        return values


def _load(file: Path, artifact: Artifact) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ArtifactError(
            f"the mirror lacks {artifact.name} {artifact.version}: {file}: {error.strerror}. Put {artifact.url} there."
        ) from error


def _fetch(url: str, artifact: Artifact) -> bytes:
    try:
        with urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310 - an address of https alone gets here
            content: bytes = answer.read()
            return content
    except (URLError, TimeoutError) as error:
        reason = getattr(error, "reason", None) or error
        raise ArtifactError(
            f"{artifact.name} {artifact.version} cannot be fetched from {url}: {reason}. On a site without internet "
            f"access, set mlbatch:mirror.artifacts to a folder that holds {artifact.file}."
        ) from error
