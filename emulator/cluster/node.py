"""The local kubelet's node. KWOK keeps it Ready; the kubelet runs its pods."""

import platform

from emulator.cluster.api import Api, ApiError, Object, is_ready
from emulator.cluster.layout import NODE_NAME

NODE_ADDRESS = "127.0.0.1"

_MANAGER = "kubelet"
_NODE = f"/api/v1/nodes/{NODE_NAME}"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Requests of the controllers here are not enforced, so the node must only never be full.
_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def register(api: Api) -> None:
    """Create the node or repair it. Fields of other owners stay."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    labels = {
        "kubernetes.io/hostname": NODE_NAME,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "node-role.kubernetes.io/control-plane": "",
    }
    node: Object = {"apiVersion": "v1", "kind": "Node"}
    identity = {"name": NODE_NAME, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    api.apply(_NODE, {**node, "metadata": identity}, _MANAGER)
    system = {"architecture": architecture, "operatingSystem": "linux", "kernelVersion": platform.release()}
    status = {
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY,
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}, {"type": "Hostname", "address": NODE_NAME}],
        "nodeInfo": {**system, "osImage": platform.system(), "containerRuntimeVersion": "local-processes"},
    }
    api.apply(f"{_NODE}/status", {**node, "metadata": {"name": NODE_NAME}, "status": status}, _MANAGER)


def node_ready(api: Api) -> bool:
    """Tell whether the node exists and is Ready."""
    try:
        return is_ready(api.get(_NODE))
    except ApiError:
        return False
