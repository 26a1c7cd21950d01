"""The node that the local kubelet stands for: its registration, its status and its heartbeat."""

from __future__ import annotations

import logging
import platform
import threading
from datetime import UTC, datetime

from emulator.cluster.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Api, ApiError, Object
from emulator.cluster.layout import NODE_NAME
from emulator.cluster.pod_status import timestamp

NODE_ADDRESS = "127.0.0.1"

_log = logging.getLogger(__name__)
_NODE = f"/api/v1/nodes/{NODE_NAME}"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# KubeletConfiguration defaults: nodeLeaseDurationSeconds 40, renewed at a quarter; nodeStatusReportFrequency 5 min.
_LEASE_SECONDS = 40
_RENEW_SECONDS = 10
_STATUS_EVERY = 30
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Pods here are controllers whose requests nobody enforces: the node must only never be full.
_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110"}

_LABELS = {
    "kubernetes.io/hostname": NODE_NAME,
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    "node-role.kubernetes.io/control-plane": "",
}


def register(api: Api) -> None:
    """Create the node, or put an existing one right, and report it Ready."""
    node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE_NAME, "labels": _LABELS}}
    try:
        api.create("/api/v1/nodes", {**node, "status": _status()})
    except ApiError as error:
        if error.status != 409:
            raise
        api.patch(_NODE, {"metadata": {"labels": _LABELS}}, MERGE_PATCH)
    _renew_lease(api)
    api.patch(f"{_NODE}/status", {"status": _status()}, STRATEGIC_MERGE_PATCH)


def start_heartbeat(api: Api) -> None:
    """Renew the node's lease and status from a thread of its own; a node that was deleted is registered again."""
    threading.Thread(target=_beat, args=(api,), name="heartbeat", daemon=True).start()


def _beat(api: Api) -> None:
    pause = threading.Event()
    beats = 0
    while True:
        pause.wait(_RENEW_SECONDS)
        beats += 1
        try:
            _renew_lease(api)
            if beats % _STATUS_EVERY == 0 or not _is_ready(api):
                register(api)
        except ApiError as error:
            _log.info("heartbeat missed: %s", error)


def _is_ready(api: Api) -> bool:
    try:
        node = api.get(_NODE)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    conditions = node.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _renew_lease(api: Api) -> None:
    spec = {
        "holderIdentity": NODE_NAME,
        "leaseDurationSeconds": _LEASE_SECONDS,
        "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    try:
        api.patch(f"{_LEASES}/{NODE_NAME}", {"spec": spec}, MERGE_PATCH)
    except ApiError as error:
        if error.status != 404:
            raise
        lease: Object = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        api.create(_LEASES, {**lease, "metadata": {"name": NODE_NAME}, "spec": spec})


def _status() -> Object:
    now = timestamp(datetime.now(UTC))
    conditions = [("Ready", "True", "KubeletReady", "the local kubelet runs")]
    conditions += [
        (kind, "False", f"KubeletHas{reason}", "not measured")
        for kind, reason in (
            ("MemoryPressure", "SufficientMemory"),
            ("DiskPressure", "NoDiskPressure"),
            ("PIDPressure", "SufficientPID"),
        )
    ]
    return {
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY,
        "addresses": [
            {"type": "InternalIP", "address": NODE_ADDRESS},
            {"type": "Hostname", "address": NODE_NAME},
        ],
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, status, reason, message in conditions
        ],
        "nodeInfo": {
            "architecture": _LABELS["kubernetes.io/arch"],
            "bootID": "",
            "containerRuntimeVersion": "local-processes",
            "kernelVersion": platform.release(),
            "kubeProxyVersion": "none",
            "kubeletVersion": "local-processes",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": platform.system(),
            "systemUUID": "",
        },
    }
