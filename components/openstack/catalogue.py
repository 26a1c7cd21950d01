"""Read every version that a VM on OpenStack installs at its first boot from catalogue.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from components.catalogue import Artifact, Chart, Image
from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """The key that an apt repository is signed with. fingerprint: the whole of it, hexadecimal."""

    url: str
    fingerprint: str
    source: str


@dataclass(frozen=True, kw_only=True)
class KindRelease:
    """A release of kind, and the images of nodes that were built for it.

    kind documents that an image works for sure with the release that it was published with alone.
    """

    kind: Artifact
    node_images: tuple[str, ...]
    source: str


class _Catalogue(Table):
    docker: str
    containerd: str
    buildx: str
    compose: str
    toolkit: str
    driver: str
    cuda: str
    cuda_package: str
    cuda_repository: str
    docker_key: SigningKey
    toolkit_key: SigningKey
    cuda_key: SigningKey
    kind_releases: tuple[KindRelease, ...]
    ended: Mapping[str, str]
    images: Mapping[str, Image]


_CATALOGUE: Final = _Catalogue.load(__name__)
DOCKER: Final = _CATALOGUE.docker
CONTAINERD: Final = _CATALOGUE.containerd
BUILDX: Final = _CATALOGUE.buildx
COMPOSE: Final = _CATALOGUE.compose
DOCKER_KEY: Final = _CATALOGUE.docker_key
TOOLKIT: Final = _CATALOGUE.toolkit
TOOLKIT_KEY: Final = _CATALOGUE.toolkit_key
DRIVER: Final = _CATALOGUE.driver
CUDA: Final = _CATALOGUE.cuda
CUDA_PACKAGE: Final = _CATALOGUE.cuda_package
CUDA_REPOSITORY: Final = _CATALOGUE.cuda_repository
CUDA_KEY: Final = _CATALOGUE.cuda_key
KIND_RELEASES: Final = _CATALOGUE.kind_releases
ENDED: Final = _CATALOGUE.ended
IMAGES: Final = _CATALOGUE.images
HELLO_WORLD: Final = IMAGES["hello_world"]
NBODY: Final = IMAGES["nbody"]
REGISTRY: Final = IMAGES["registry"]
ARTIFACTS: Final = tuple(release.kind for release in KIND_RELEASES)
CHARTS: Final[tuple[Chart, ...]] = ()
