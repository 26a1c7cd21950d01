"""The arguments of a VM's first boot."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.openstack import catalogue

API_PORT: Final = 6443
"""Port of the kind cluster's API server. It listens only on the VM's loopback."""
CLUSTER_NAME: Final = "mlops-platform"
"""Name of the kind cluster in the scripts of the OSS MLOps platform (config.env)."""


@dataclass(frozen=True, kw_only=True)
class HostKey:
    """The Ed25519 host key of the VM.

    private_openssh: in OpenSSH's format, a secret.
    public: its line `ssh-ed25519 AAAA...`.
    """

    private_openssh: pulumi.Input[str]
    public: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class DockerArgs:
    """Versions and builds of Docker's packages, without the suffix for the system."""

    version: str = catalogue.DOCKER
    containerd: str = catalogue.CONTAINERD
    buildx: str = catalogue.BUILDX
    compose: str = catalogue.COMPOSE


@dataclass(frozen=True, kw_only=True)
class GpuStackArgs:
    """Branch of NVIDIA's driver, release of CUDA, version of the container toolkit's packages."""

    driver: str = catalogue.DRIVERS[0]
    cuda: str = next(iter(catalogue.CUDA))
    toolkit: str = catalogue.TOOLKITS[0]


@dataclass(frozen=True, kw_only=True)
class KindArgs:
    """A kind cluster with one node on the VM.

    node_image: an image with digest from the catalogue's releases of kind.
    recreate: delete a cluster on the volume that has another image or port, with all its data.

    The values do not depend on GPUs or on the cluster's workloads, because the cluster outlives VMs. A VM without a GPU
    can create it, and a VM with a GPU can continue with it.
    """

    node_image: str
    api_port: int = API_PORT
    recreate: bool = False
    name: str = CLUSTER_NAME


@dataclass(frozen=True, kw_only=True)
class FirstBootArgs:
    """The first boot of a VM.

    user: the user who signs in, with sudo. Created if the image does not have it.
    authorized_key: line with that user's public key.
    other_keys: keys of other people who sign in as this user.
    volume_id: of the Cinder volume. Its disk's serial is the first 20 characters.
    mount: the volume's path.
    gpu: None without a GPU.
    kind: None without a cluster.
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
