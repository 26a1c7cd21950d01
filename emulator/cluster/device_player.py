"""The process that plays hardware operators on simulated nodes; what it does on a node is decided in `devices`."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import logging
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from emulator.cluster import devices
from emulator.cluster.api import MERGE_PATCH, Api, ApiError, Object, Store
from emulator.cluster.credentials import Account, read_kubeconfig
from emulator.cluster.devices import Hardware, Shown, World
from emulator.cluster.layout import Layout
from emulator.cluster.pod_status import timestamp
from emulator.cluster.ready import announce
from emulator.paths import Paths

_log = logging.getLogger("devices")
_SYNC_SECONDS = 30.0
# Custom resources are asked for at this pace: their kinds come and go, and they change seldom.
_PACE = 2.0
_NODES = "/api/v1/nodes"
_NIC_POLICIES = "/apis/mellanox.com/v1alpha1/nicclusterpolicies"
_CLUSTER_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_FEATURE_RULES = "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules"
_POLICIES = {"network-operator": _NIC_POLICIES, "gpu-operator": _CLUSTER_POLICIES}


class Player:
    """Brings every simulated node with devices to what `devices` says it shows; idle while there is none."""

    def __init__(self, account: Account) -> None:
        self._api = Api(account)
        self._wake = threading.Event()
        self._nodes = Store(self._api, _NODES, changed=lambda key: self._wake.set())
        self._pods: Store | None = None

    def run(self, ready: Path, stop: threading.Event) -> None:
        """Play until told to stop. Raises TimeoutError when the API server does not answer."""
        self._nodes.start()
        if not self._nodes.wait(_SYNC_SECONDS):
            raise TimeoutError(f"the API server did not list the nodes in {_SYNC_SECONDS:.0f} s")
        announce(ready)
        while not stop.is_set():
            machines = self._machines()
            try:
                if machines:
                    self._play(machines)
            except ApiError as error:
                _log.info("%s", error)
            except Exception:
                _log.exception("a round failed")
            self._wake.wait(_PACE if machines else None)
            self._wake.clear()

    def stop(self) -> None:
        """Have `run` look at its stop event."""
        self._wake.set()

    def _machines(self) -> list[tuple[Object, Hardware]]:
        found = ((node, Hardware.of(node)) for node in self._nodes.all())
        return [(node, hardware) for node, hardware in found if hardware is not None]

    def _play(self, machines: Sequence[tuple[Object, Hardware]]) -> None:
        world = self._world()
        nodes: dict[str, tuple[Hardware, Shown]] = {}
        for node, hardware in machines:
            shown = devices.shown(node, hardware, world)
            nodes[node["metadata"]["name"]] = (hardware, shown)
            body, status = devices.changes(node, shown)
            path = f"{_NODES}/{node['metadata']['name']}"
            with contextlib.suppress(_GoneError):
                if status:
                    self._patch(f"{path}/status", status)
                if body:
                    self._patch(path, body)
                for reason, message in shown.notes:
                    self._tell(node, reason, message)
        self._show_states(world, nodes)

    def _world(self) -> World:
        if self._pods is None:
            self._pods = Store(self._api, "/api/v1/pods", changed=lambda key: self._wake.set())
            self._pods.start()
            self._pods.wait(_SYNC_SECONDS)
        return World(
            pods=self._pods.all(),
            config_map=self._config_map,
            nic_policies=self._list(_NIC_POLICIES),
            cluster_policies=self._list(_CLUSTER_POLICIES),
            feature_rules=self._list(_FEATURE_RULES),
        )

    def _show_states(self, world: World, nodes: Mapping[str, tuple[Hardware, Shown]]) -> None:
        for operator, resource, state in devices.policy_states(world, nodes):
            if (resource.get("status") or {}).get("state") != state:
                with contextlib.suppress(_GoneError):
                    path = f"{_POLICIES[operator]}/{resource['metadata']['name']}/status"
                    self._patch(path, {"status": {"state": state}})
                    _log.info("%s is %s", resource["metadata"]["name"], state)

    def _list(self, path: str) -> list[Object]:
        try:
            return list(self._api.get(path).get("items") or [])
        except ApiError as error:
            if error.status == 404:
                return []
            raise

    def _config_map(self, namespace: str, name: str) -> Object | None:
        try:
            return self._api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _patch(self, path: str, body: Object) -> None:
        try:
            self._api.patch(path, body, MERGE_PATCH)
        except ApiError as error:
            if error.status == 404:
                raise _GoneError from None
            raise
        _log.info("%s: %s", path, body)

    def _tell(self, node: Object, reason: str, message: str) -> None:
        """Record an event at the node, once for each message."""
        name = node["metadata"]["name"]
        digest = hashlib.sha256(f"{node['metadata']['uid']} {message}".encode()).hexdigest()[:12]
        now = timestamp(datetime.now(UTC))
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{digest}", "namespace": "default"},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]},
            "type": "Warning",
            "reason": reason,
            "message": f"{message} (played by the local environment)",
            "source": {"component": "emulator-devices"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._api.create("/api/v1/namespaces/default/events", event)
        except ApiError as error:
            if error.status != 409:
                raise


class _GoneError(Exception):
    """The object was deleted meanwhile."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play for the cluster of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.cluster.device_player", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    layout = Layout(Paths.of(state=options.state))
    player = Player(read_kubeconfig(layout.secret("devices.kubeconfig").read_text()))
    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        stop.set()
        player.stop()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        player.run(layout.devices_socket, stop)
    except (ApiError, TimeoutError) as error:
        _log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
