"""Read the catalogue's artifacts from a mirror's folder, a mirror's URL, or upstream."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from components import registries
from components.catalogue import Artifact, Chart

_OCI = "oci://"
_TIMEOUT = 30.0
"""Seconds for each response of an artifact server."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """An upstream release: the text of its manifest file, and its images by container name."""

    manifest: str
    images: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class LocatedChart:
    """A chart and its location.

    chart: the chart's name in its repository. With a mirror, the archive's path or URL.
    repository: None if `chart` is the complete location.
    values: values that set the mirror for its images.
    """

    name: str
    chart: str
    version: str
    repository: str | None
    values: Mapping[str, Any] = field(default_factory=dict)


class ArtifactError(RuntimeError):
    """An artifact is not available or differs from the catalogue. The message names it and has the fix."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """A site's copies of upstream artifacts.

    artifacts: an absolute path of a folder, or an https URL without trailing slash, with `<name>-<version>.yaml` files.
    None for upstream.
    charts: the same for `<name>-<version>.tgz` files, which the Kubernetes provider reads.
    images: a registry prefix that replaces the registry host of each image, including those of charts. None for
    upstream. Digests in references stay the same, because the mirror has complete copies of images for all platforms.
    verify: files must have the catalogue's digests. Set to false for a mirror whose files are rendered from upstream's
    source and not copied.
    """

    artifacts: str | None = None
    charts: str | None = None
    images: str | None = None
    verify: bool = True

    def locate(self, artifact: Artifact) -> str:
        """Return the path or URL of an artifact."""
        if self.artifacts is None:
            return artifact.url
        if self.artifacts.startswith("https://"):
            return f"{self.artifacts}/{artifact.file}"
        return str(Path(self.artifacts) / artifact.file)

    def release(self, artifact: Artifact) -> Release:
        """Return an artifact with its images' references. Raises ArtifactError as `read` does."""
        images = {container: self.image(reference) for container, reference in artifact.images.items()}
        return Release(manifest=self.read(artifact), images=images)

    def chart(self, chart: Chart) -> LocatedChart:
        """Return the location of a chart: the mirror's archive, otherwise upstream's.

        Raises ArtifactError if the archive has another digest than recorded, or cannot be read. The provider reads it
        again from the same location.
        """
        name, repository = chart.name, None
        if self.charts is not None:
            name = f"{self.charts}/{chart.file}"
        elif chart.repository.startswith(_OCI):
            name = f"{chart.repository}/{chart.name}"
        elif chart.archive is not None:
            name = chart.archive
        else:
            repository = chart.repository
        if self.verify and chart.sha256 is not None and repository is None:
            self._verify(chart, name)
        return LocatedChart(
            name=chart.name,
            chart=name,
            version=chart.version,
            repository=repository,
            values=self._image_values(chart),
        )

    def read(self, artifact: Artifact) -> str:
        """Return an artifact's text.

        Raises ArtifactError if it does not exist, cannot be fetched in time, or has another digest than recorded.
        """
        content = self.fetch(artifact)
        digest = hashlib.sha256(content).hexdigest()
        if self.verify and artifact.sha256 is not None and digest != artifact.sha256:
            raise _other(artifact, self.locate(artifact), digest, artifact.url)
        return content.decode()

    def fetch(self, artifact: Artifact) -> bytes:
        """Return an artifact's bytes without changes. Raises ArtifactError if they are not available."""
        return _read(self.locate(artifact), artifact)

    def image(self, reference: str) -> str:
        """Return the reference to pull an image by: `<prefix>/<path>` instead of `<host>/<path>`."""
        if self.images is None:
            return reference
        _, _, path = reference.partition("/")
        return f"{self.images}/{path}"

    def _verify(self, chart: Chart, location: str) -> None:
        if location.startswith(_OCI):
            try:
                digest = registries.chart_digest(chart.repository, chart.name, chart.version)
            except registries.RegistryError as error:
                raise _unreachable(chart, location, error) from error
        else:
            digest = hashlib.sha256(_read(location, chart)).hexdigest()
        if digest != chart.sha256:
            raise _other(chart, location, digest, chart.archive or chart.repository)

    def _image_values(self, chart: Chart) -> Mapping[str, Any]:
        values: dict[str, Any] = {}
        for path, upstream in chart.registries.items() if self.images is not None else ():
            *sections, last = path.split(".")
            at = values
            for section in sections:
                at = at.setdefault(section, {})
            at[last] = f"{self.images}/{upstream}".rstrip("/")
        return values


def _read(location: str, entry: Artifact | Chart) -> bytes:
    return fetch(location, entry) if location.startswith("https://") else _load(Path(location), entry)


def _load(file: Path, entry: Artifact | Chart) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        upstream = entry.url if isinstance(entry, Artifact) else entry.archive or f"{entry.name} of {entry.repository}"
        raise ArtifactError(
            f"the mirror lacks {entry.name} {entry.version}: {file}: {error.strerror}. Put {upstream} there."
        ) from error


def fetch(url: str, entry: Artifact | Chart) -> bytes:
    """Return the response of an entry's https URL. Raises ArtifactError with the fix if the request fails."""
    try:
        with urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310 - an address of https alone gets here
            content: bytes = answer.read()
            return content
    except (URLError, TimeoutError) as error:
        raise _unreachable(entry, url, error) from error


def _unreachable(entry: Artifact | Chart, location: str, error: OSError) -> ArtifactError:
    reason = getattr(error, "reason", None) or error
    return ArtifactError(
        f"{entry.name} {entry.version} cannot be fetched from {location}: {reason}. On a site without internet "
        f"access, set mlbatch:mirror.artifacts to a folder that holds {entry.file}."
    )


def _other(entry: Artifact | Chart, location: str, digest: str, upstream: str) -> ArtifactError:
    return ArtifactError(
        f"{location} is not {entry.name} {entry.version}: its sha256 is {digest}, the catalogue has {entry.sha256}. "
        f"Fetch it again from {upstream}."
    )
