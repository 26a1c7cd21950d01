"""Every version that the platform installs, pinned in one place.

An entry says where upstream publishes the bytes, which images they run, and where both statements come from. A digest
stands here only once it was verified; where it is absent, the bytes are taken as they are served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """One version of an upstream's manifest file.

    name, version: `<name>-<version>.yaml` is the file's name in a mirror.
    url:    where upstream publishes it.
    sha256: digest of the file, hexadecimal; None while nobody has verified one.
    images: the images its workloads run, by the name of the container.
    source: the document that names the file and the images.
    """

    name: str
    version: str
    url: str
    sha256: str | None = None
    images: Mapping[str, str]
    source: str

    @property
    def file(self) -> str:
        """The file's name in a mirror."""
        return f"{self.name}-{self.version}.yaml"


@dataclass(frozen=True, kw_only=True)
class Image:
    """A container image that the platform runs by itself, outside of any upstream manifest."""

    reference: str
    source: str


KUEUE: Final = "kueue"
APPWRAPPER: Final = "appwrapper"

ARTEFACTS: Final = (
    Artefact(
        name=KUEUE,
        version="v0.15.2",
        url="https://github.com/kubernetes-sigs/kueue/releases/download/v0.15.2/manifests.yaml",
        images={"manager": "registry.k8s.io/kueue/kueue:v0.15.2"},
        source="https://kueue.sigs.k8s.io/docs/installation/",
    ),
    Artefact(
        name=APPWRAPPER,
        version="v1.1.2",
        url="https://github.com/project-codeflare/appwrapper/releases/download/v1.1.2/install.yaml",
        images={"manager": "quay.io/ibm/appwrapper:v1.1.2"},
        source="https://github.com/project-codeflare/appwrapper/blob/v1.1.2/README.md",
    ),
)

PYTHON: Final = Image(
    reference="docker.io/library/python:3.12.8-slim-bookworm",
    source="https://hub.docker.com/_/python",
)
BUSYBOX: Final = Image(
    reference="docker.io/library/busybox:1.36.1",
    source="https://hub.docker.com/_/busybox",
)


def versions(name: str) -> tuple[str, ...]:
    """Return the versions of an upstream that the platform knows, newest first."""
    return tuple(artefact.version for artefact in ARTEFACTS if artefact.name == name)


def find(name: str, version: str) -> Artefact:
    """Return the entry of an upstream's version; raises KeyError when there is none."""
    for artefact in ARTEFACTS:
        if (artefact.name, artefact.version) == (name, version):
            return artefact
    raise KeyError(f"{name} {version} is not in the catalogue")
