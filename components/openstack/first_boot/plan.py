"""The steps of a first boot, in order, and their environment."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from components.openstack import catalogue
from components.openstack.catalogue import KindRelease
from components.openstack.first_boot.arguments import FirstBootArgs, KindArgs

SERIAL_LENGTH: Final = 20
"""Characters of a volume's ID in its disk's serial, the limit of virtio-blk (VIRTIO_BLK_ID_BYTES)."""
XFS_FEATURES: Final = "/usr/share/xfsprogs/mkfs/lts_5.15.conf"
"""The XFS features that the kernel of Ubuntu 22.04, 5.15, can mount (xfsprogs-dev, mkfs/lts_5.15.conf).

The tools of 24.04, 6.6, enable a feature by default that this kernel rejects: nrext64.
"""
PAUSE: Final = 30
"""Seconds between two attempts."""
HOST_PORTS: Final[Mapping[int, int]] = {80: 80, 443: 443, 30950: 5000, **{31000 + i: 6000 + i for i in range(6)}}
"""Ports of the VM's loopback, by port of kind's node: those of ingresses, and node ports for services of the user.

Source: the OSS MLOps platform's scripts/create_gpu_cluster.sh. Every cluster has them, because it outlives VMs.
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A program of the first boot, `<name>.sh`. seconds: limit for one attempt."""

    name: str
    attempts: int = 3
    seconds: int = 900


SYSTEM: Final = (
    Step(name="packages", attempts=10, seconds=3600),
    Step(name="volume", attempts=2),
    Step(name="data-root", seconds=7200),
    Step(name="docker", attempts=5),
)
GPU: Final = (
    Step(name="driver", attempts=5, seconds=3600),
    Step(name="reboot"),
    Step(name="cuda", seconds=7200),
    Step(name="toolkit", attempts=5),
)
CHECKS: Final = (Step(name="checks", attempts=5),)
CLUSTER: Final = (Step(name="cluster", seconds=1800), Step(name="node"), Step(name="registry"))


def steps(args: FirstBootArgs) -> tuple[Step, ...]:
    """Return the steps for these arguments."""
    return SYSTEM + (GPU if args.gpu else ()) + CHECKS + (CLUSTER if args.kind else ())


def plan(args: FirstBootArgs, volume_id: str) -> dict[str, object]:
    """Return the runner's input: the steps and their environment."""
    return {"steps": [asdict(step) for step in steps(args)], "environment": environment(args, volume_id)}


def environment(args: FirstBootArgs, volume_id: str) -> dict[str, str]:
    """Return the variables of the steps."""
    variables = {
        "USER_NAME": args.user,
        "VOLUME_SERIAL": volume_id[:SERIAL_LENGTH],
        "VOLUME_SECONDS": "600",
        "MOUNT": args.mount,
        "XFS_FEATURES": XFS_FEATURES,
        "PAUSE": str(PAUSE),
        "DOCKER_VERSION": args.docker.version,
        "CONTAINERD_VERSION": args.docker.containerd,
        "BUILDX_VERSION": args.docker.buildx,
        "COMPOSE_VERSION": args.docker.compose,
        "DOCKER_KEY": catalogue.DOCKER_KEY.fingerprint,
        "DOCKER_KEY_URL": catalogue.DOCKER_KEY.url,
        "HELLO_WORLD": catalogue.HELLO_WORLD.reference,
    }
    return {**variables, **_gpu(args), **(_kind(args.kind) if args.kind else {})}


def _gpu(args: FirstBootArgs) -> Mapping[str, str]:
    if args.gpu is None:
        return {}
    cuda = catalogue.CUDA[args.gpu.cuda]
    return {
        "DRIVER_VERSION": args.gpu.driver,
        "CUDA_VERSION": cuda.version,
        "CUDA_PACKAGE": cuda.package,
        "CUDA_UBUNTU": " ".join(cuda.ubuntu),
        "CUDA_REPOSITORY": catalogue.CUDA_REPOSITORY,
        "CUDA_KEY": catalogue.CUDA_KEY.fingerprint,
        "CUDA_KEY_URL": catalogue.CUDA_KEY.url,
        "TOOLKIT_VERSION": args.gpu.toolkit,
        "TOOLKIT_KEY": catalogue.TOOLKIT_KEY.fingerprint,
        "TOOLKIT_KEY_URL": catalogue.TOOLKIT_KEY.url,
        "NBODY": catalogue.NBODY.reference,
    }


def _kind(args: KindArgs) -> Mapping[str, str]:
    release = kind_release(args.node_image)
    return {
        "KIND_NAME": args.name,
        "KIND_URL": release.kind.url,
        "KIND_SHA256": release.kind.sha256 or "",
        "KIND_RECREATE": "yes" if args.recreate else "",
        "NODE_IMAGE": args.node_image,
        "API_PORT": str(args.api_port),
        "API_SECONDS": "600",
        "REGISTRY_IMAGE": catalogue.REGISTRY.reference,
    }


def kind_release(node_image: str) -> KindRelease:
    """Return the release of kind that published a node image. Raises ValueError if the catalogue has none."""
    for release in catalogue.KIND_RELEASES:
        if node_image in release.node_images:
            return release
    known = ", ".join(image for release in catalogue.KIND_RELEASES for image in release.node_images)
    raise ValueError(f"no release of kind in the catalogue was published with the image {node_image}; it has {known}")


def kind_config(args: KindArgs) -> dict[str, object]:
    """Return kind's configuration of the cluster (kind.sigs.k8s.io/docs/user/configuration).

    It is that of the OSS MLOps platform's scripts/create_gpu_cluster.sh, with a fixed port of the API server. All ports
    are on loopback, because users reach the user interfaces by SSH. NVIDIA's runtime, if it accepts devices as volume
    mounts, reads the mount as "all GPUs". Another runtime mounts an empty file. Nodes of kind 0.27 and later have the
    folder of registries by default.
    """
    registries = '[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "/etc/containerd/certs.d"\n'
    node: dict[str, object] = {
        "role": "control-plane",
        "image": args.node_image,
        "kubeadmConfigPatches": [
            'kind: InitConfiguration\nnodeRegistration:\n  kubeletExtraArgs:\n    node-labels: "ingress-ready=true"\n'
        ],
        "extraPortMappings": [
            {"containerPort": inside, "hostPort": outside, "listenAddress": "127.0.0.1", "protocol": "TCP"}
            for inside, outside in HOST_PORTS.items()
        ],
        "extraMounts": [{"hostPath": "/dev/null", "containerPath": "/var/run/nvidia-container-devices/all"}],
    }
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {"ipFamily": "dual", "apiServerAddress": "127.0.0.1", "apiServerPort": args.api_port},
        "containerdConfigPatches": [registries],
        "nodes": [node],
    }
