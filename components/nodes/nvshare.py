"""NVshare: several pods share a GPU of a node, and each may use all of its memory.

Objects are those of grgalex/nvshare, kubernetes/manifests, at commit 1a8f211ae45a8aded4f54d0e1832c6073a4f19ef. Names,
commands, paths and rights are upstream's. Placement and limits are the platform's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes import workloads
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.placement import NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import Volume, volumes
from components.layer import Layer

NAMESPACE: Final = "nvshare-system"
VIRTUAL_GPUS: Final = 10
"""How many pods share a GPU, from upstream's manifest."""
SCHEDULER: Final = "nvshare-scheduler"
PLUGIN: Final = "nvshare-device-plugin"

RESOURCES: Final = Resources(cpu_request="10m", memory_request="32Mi", cpu_limit="500m", memory_limit="128Mi")
_FOLDER: Final = "/var/run/nvshare"
_LIBRARY: Final = "/host-var-run-nvshare"
_SHARED: Final = f"{_LIBRARY}/libnvshare.so"
_KUBELET: Final = "/var/lib/kubelet/device-plugins"


@dataclass(frozen=True, kw_only=True)
class NvshareImages:
    """Images of upstream's library, device plugin and scheduler."""

    library: str
    plugin: str
    scheduler: str


@dataclass(frozen=True, kw_only=True)
class NvshareArgs:
    """The arguments of NVshare.

    namespace: must exist, and allow privileged and critical pods.
    nodes: nodes with one GPU each.
    virtual_gpus: how many pods share a GPU.
    """

    namespace: pulumi.Input[str]
    images: NvshareImages
    nodes: NodeGroup
    virtual_gpus: int = VIRTUAL_GPUS


class Nvshare(Layer):
    """Run NVshare on GPU nodes whose device plugin already offers `nvidia.com/gpu`.

    Its plugin requests a node's GPU like a pod, so that no other pod gets the whole GPU, and offers it as
    `nvshare.com/gpu`. NVshare's scheduler, which is not a Kubernetes scheduler, lets one pod compute at a time. It
    starts first, so that pods never share a GPU without it.
    """

    def __init__(self, name: str, args: NvshareArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:Nvshare", name, None, opts)
        scheduler = Manifest(f"{name}/{SCHEDULER}", scheduler_body(args), pulumi.ResourceOptions(parent=self))
        after = pulumi.ResourceOptions(parent=self, depends_on=[scheduler])
        self.ready = [Manifest(f"{name}/{PLUGIN}", plugin_body(args), after)]
        self.register_outputs({})


def scheduler_body(args: NvshareArgs) -> Document:
    """Return the scheduler's DaemonSet: an unprivileged process with a socket in a folder of the node."""
    socket = Volume(name="nvshare-socket-directory", path=_FOLDER, source=_folder(_FOLDER, create=True))
    return _daemon_set(args, SCHEDULER, [_container(SCHEDULER, args.images.scheduler, [socket])], [socket])


def plugin_body(args: NvshareArgs) -> Document:
    """Return the device plugin's DaemonSet.

    Only the container that mounts the library is privileged, so that its mount is visible on the node (kubernetes.io,
    concepts/storage/volumes, Mount propagation). From there, each pod that shares the GPU mounts it.
    """
    library = Volume(name="host-var-run-nvshare", path=_LIBRARY, source=_folder(_FOLDER, create=True))
    kubelet = Volume(name="device-plugin-socket", path=_KUBELET, source=_folder(_KUBELET, create=False))
    plugin = _container(PLUGIN, args.images.plugin, [kubelet])
    plugin["env"] = [{"name": "NVSHARE_VIRTUAL_DEVICES", "value": str(args.virtual_gpus)}]
    plugin["resources"]["limits"][names.GPU] = "1"
    return _daemon_set(args, PLUGIN, [_library(args.images.library, library), plugin], [library, kubelet])


def _library(image: str, volume: Volume) -> Document:
    mount = f"test -f {_SHARED} || touch {_SHARED} && mount -v --bind /libnvshare.so {_SHARED}"
    unmount = f"umount -v {_SHARED} && rm {_SHARED}"
    return {
        "name": "nvshare-lib",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "lifecycle": {
            "postStart": {"exec": {"command": ["/bin/sh", "-c", mount]}},
            "preStop": {"exec": {"command": ["/bin/sh", "-c", unmount]}},
        },
        "resources": _bounds(),
        "securityContext": {"privileged": True},
        "volumeMounts": [{**volume.mount(), "mountPropagation": "Bidirectional"}],
    }


def _container(name: str, image: str, mounted: list[Volume]) -> Document:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": _bounds(),
        "securityContext": dict(UNPRIVILEGED),
        "volumeMounts": [volume.mount() for volume in mounted],
    }


def _bounds() -> dict[str, dict[str, str]]:
    return {which: dict(amounts) for which, amounts in RESOURCES.body().items()}


def _folder(path: str, *, create: bool) -> Mapping[str, Any]:
    return {"hostPath": {"path": path, "type": "DirectoryOrCreate" if create else "Directory"}}


def _daemon_set(args: NvshareArgs, name: str, containers: list[Document], mounted: list[Volume]) -> Document:
    pod = {
        "automountServiceAccountToken": False,
        "priorityClassName": names.SYSTEM_PRIORITY,
        **args.nodes.body(),
        "containers": containers,
        "volumes": volumes(mounted),
    }
    return workloads.daemon_set(name, args.namespace, {"name": name}, pod)
