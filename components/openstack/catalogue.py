"""Read every version that a VM on OpenStack installs at its first boot from catalogue.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
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


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The last day of upstream's fixes, by version: a branch, a release or a minor version."""

    driver: Mapping[str, date]
    ubuntu: Mapping[str, date]
    kubernetes: Mapping[str, date]
    containerd: Mapping[str, date]


@dataclass(frozen=True, kw_only=True)
class OldGpu:
    """The last branch of the driver and the last CUDA for a GPU that upstream has dropped."""

    driver: str
    cuda: str


@dataclass(frozen=True, kw_only=True)
class CudaRelease:
    """A release of CUDA.

    package: version of cuda-toolkit-<version>. driver: the oldest supported branch.
    ubuntu: releases of Ubuntu that it is packaged for.
    """

    version: str
    package: str
    driver: int
    ubuntu: tuple[str, ...]
    source: str


class _Catalogue(Table):
    docker: str
    containerd: str
    buildx: str
    compose: str
    ends: Ends
    gpus: Mapping[str, OldGpu]
    cuda: tuple[CudaRelease, ...]
    cuda_repository: str
    toolkits: tuple[str, ...]
    docker_key: SigningKey
    toolkit_key: SigningKey
    cuda_key: SigningKey
    kind_releases: tuple[KindRelease, ...]
    images: Mapping[str, Image]


_CATALOGUE: Final = _Catalogue.load(__name__)
DOCKER: Final = _CATALOGUE.docker
CONTAINERD: Final = _CATALOGUE.containerd
BUILDX: Final = _CATALOGUE.buildx
COMPOSE: Final = _CATALOGUE.compose
DOCKER_KEY: Final = _CATALOGUE.docker_key
TOOLKITS: Final = _CATALOGUE.toolkits
TOOLKIT_KEY: Final = _CATALOGUE.toolkit_key
ENDS: Final = _CATALOGUE.ends
DRIVERS: Final = tuple(ENDS.driver)
UBUNTUS: Final = tuple(ENDS.ubuntu)
OLD_GPUS: Final = _CATALOGUE.gpus
CUDA: Final = {release.version: release for release in _CATALOGUE.cuda}
CUDA_REPOSITORY: Final = _CATALOGUE.cuda_repository
CUDA_KEY: Final = _CATALOGUE.cuda_key
KIND_RELEASES: Final = _CATALOGUE.kind_releases
IMAGES: Final = _CATALOGUE.images
HELLO_WORLD: Final = IMAGES["hello_world"]
NBODY: Final = IMAGES["nbody"]
REGISTRY: Final = IMAGES["registry"]
ARTIFACTS: Final = tuple(release.kind for release in KIND_RELEASES)
CHARTS: Final[tuple[Chart, ...]] = ()
