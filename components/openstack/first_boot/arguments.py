"""What a VM's first boot is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.openstack import catalogue

API_PORT: Final = 6443
"""Where the kind cluster's API server listens, on the VM's loopback alone."""
CLUSTER_NAME: Final = "mlops-platform"
"""Of the kind cluster, as the OSS MLOps platform's scripts call it (config.env)."""


@dataclass(frozen=True, kw_only=True)
class HostKey:
    """The Ed25519 key by which the VM is known.

    private_openssh: in OpenSSH's format, a secret. public: its line `ssh-ed25519 AAAA...`.
    """

    private_openssh: pulumi.Input[str]
    public: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class DockerArgs:
    """Versions and builds of Docker's packages, without what they append for the system."""

    version: str = catalogue.DOCKER
    containerd: str = catalogue.CONTAINERD
    buildx: str = catalogue.BUILDX
    compose: str = catalogue.COMPOSE


@dataclass(frozen=True, kw_only=True)
class GpuStackArgs:
    """Branch of NVIDIA's driver, CUDA's release, version of the container toolkit's packages."""

    driver: str = catalogue.DRIVER
    cuda: str = catalogue.CUDA
    toolkit: str = catalogue.TOOLKIT


@dataclass(frozen=True, kw_only=True)
class KindArgs:
    """A kind cluster of one node on the VM.

    node_image: with its digest, of those that the catalogue's releases of kind have. recreate: whether a cluster on the
    volume that has another image or port may go, with all that it holds.

    Nothing here depends on GPUs or on what runs in the cluster, for it outlives VMs: one without a GPU makes it, and
    one with a GPU goes on with it.
    """

    node_image: str
    api_port: int = API_PORT
    recreate: bool = False
    name: str = CLUSTER_NAME


@dataclass(frozen=True, kw_only=True)
class FirstBootArgs:
    """The first boot of a VM.

    user: who signs in, with sudo; made if the image has no such user. authorized_key: line of that user's public key;
    other_keys: those of others who sign in as this user.
    volume_id: of the Cinder volume, whose disk has the first 20 characters as its serial. mount: where it goes.
    gpu: None without a GPU. kind: None without a cluster.
    """

    user: str
    authorized_key: pulumi.Input[str]
    host_key: HostKey
    volume_id: pulumi.Input[str]
    mount: str = "/media/volume"
    docker: DockerArgs = field(default_factory=DockerArgs)
    gpu: GpuStackArgs | None = None
    kind: KindArgs | None = None
    other_keys: Sequence[str] = ()
