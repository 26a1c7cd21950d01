"""Every version that a VM on OpenStack installs at its first boot, pinned in one place (see `components.catalogue`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from components.catalogue import Artifact, Chart, Image


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


DOCKER: Final = "28.5.2-1"
"""Docker Engine; the last of 28, for 29 keeps images outside its data root (docs.docker.com, storage/containerd).

Of this and the three below: version and build of the package, without what Docker appends for the system.
"""
CONTAINERD: Final = "1.7.29-1"
"""containerd.io of Docker's repository; the first with a runc without CVE-2025-31133, -52565 and -52881."""
BUILDX: Final = "0.29.1-1"
"""docker-buildx-plugin, of the month of Docker 28.5."""
COMPOSE: Final = "2.40.3-1"
"""docker-compose-plugin, of the month of Docker 28.5."""
DOCKER_KEY: Final = SigningKey(
    url="https://download.docker.com/linux/ubuntu/gpg",
    fingerprint="9DC858229FC7DD38854AE2D88D81803C0EBFCD88",
    source="https://docs.docker.com/engine/install/ubuntu/",
)

TOOLKIT: Final = "1.17.8-1"
"""NVIDIA's container toolkit."""
TOOLKIT_KEY: Final = SigningKey(
    url="https://nvidia.github.io/libnvidia-container/gpgkey",
    fingerprint="C95B321B61E88C1809C4F759DDCAE044F796ECB0",
    source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
)

DRIVER: Final = "535"
"""Branch of NVIDIA's driver; Ubuntu's own archive has it as nvidia-driver-535-server, signed as the system is."""

CUDA: Final = "12.2"
CUDA_PACKAGE: Final = "12.2.2-1"
"""cuda-toolkit-12-2 of NVIDIA's apt repository. The installer of the guides, 3 GB, has no published SHA-256."""
CUDA_REPOSITORY: Final = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64"
CUDA_KEY: Final = SigningKey(
    url=f"{CUDA_REPOSITORY}/3bf863cc.pub",
    fingerprint="EB693B3035CD5710E231E123A4B469963BF863CC",
    source="https://developer.nvidia.com/blog/updating-the-cuda-linux-gpg-repository-key/",
)

KIND_RELEASES: Final = (
    KindRelease(
        kind=Artifact(
            name="kind",
            version="v0.30.0",
            url="https://github.com/kubernetes-sigs/kind/releases/download/v0.30.0/kind-linux-amd64",
            sha256="517ab7fc89ddeed5fa65abf71530d90648d9638ef0c4cde22c2c11f8097b8889",
            source="https://github.com/kubernetes-sigs/kind/releases/tag/v0.30.0",
            suffix="bin",
        ),
        node_images=(
            "kindest/node:v1.34.0@sha256:7416a61b42b1662ca6ca89f02028ac133a309a2a30ba309614e8ec94d976dc5a",
            "kindest/node:v1.33.4@sha256:25a6018e48dfcaee478f4a59af81157a437f15e6e140bf103f85a2e7cd0cbbf2",
            "kindest/node:v1.32.8@sha256:abd489f042d2b644e2d033f5c2d900bc707798d075e8186cb65e3f1367a9d5a1",
            "kindest/node:v1.31.12@sha256:0f5cc49c5e73c0c2bb6e2df56e7df189240d83cf94edfa30946482eb08ec57d2",
        ),
        source="https://github.com/kubernetes-sigs/kind/releases/tag/v0.30.0",
    ),
    KindRelease(
        kind=Artifact(
            name="kind",
            version="v0.14.0",
            url="https://github.com/kubernetes-sigs/kind/releases/download/v0.14.0/kind-linux-amd64",
            sha256="af5e8331f2165feab52ec2ae07c427c7b66f4ad044d09f253004a20252524c8b",
            source="https://github.com/kubernetes-sigs/kind/releases/tag/v0.14.0",
            suffix="bin",
        ),
        node_images=("kindest/node:v1.24.0@sha256:0866296e693efe1fed79d5e6c7af8df71fc73ae45e3679af05342239cdc5bc8e",),
        source="https://github.com/kubernetes-sigs/kind/releases/tag/v0.14.0",
    ),
)
"""The newest first; the last is that of the OSS MLOps platform (scripts/install_tools.sh, create_cluster.sh)."""

ENDED: Final[Mapping[str, str]] = {
    "1.24": "July 2023",
    "1.31": "November 2025",
    "1.32": "February 2026",
    "1.33": "June 2026",
}
"""When versions of Kubernetes among those had their last fixes (kubernetes.io, releases/patch-releases, "Non-active
branch history"), where there is a later one."""

HELLO_WORLD: Final = Image(
    reference="docker.io/library/hello-world:linux@sha256:1b4338ade6d6d9eff53264cdc0f9caf1d717cf89dbfcb1cb13c57bc0a3c199a0",
    source="https://github.com/docker-library/repo-info/blob/72e4be79b9c831d8da7d63a6ce871b20fc9e06c1/"
    "repos/hello-world/remote/linux.md",
)
NBODY: Final = Image(
    reference="nvcr.io/nvidia/k8s/cuda-sample:nbody@sha256:59261e419d6d48a772aad5bb213f9f1588fcdb042b115ceb7166c89a51f03363",
    source="https://docs.nvidia.com/cuda/eflow-users-guide/index.html, which prints the digest",
)
REGISTRY: Final = Image(
    reference="docker.io/library/registry:2.8.3@sha256:a3d8aaa63ed8681a604f1dea0aa03f100d5895b6a58ace528858a7b332415373",
    source="https://kind.sigs.k8s.io/docs/user/local-registry/",
)
"""The registry beside the kind cluster: the last `registry:2`, which the platform's install_local_registry.sh has."""

ARTIFACTS: Final = tuple(release.kind for release in KIND_RELEASES)
CHARTS: Final[tuple[Chart, ...]] = ()
