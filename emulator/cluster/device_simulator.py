"""Gives simulated nodes the labels and resources that `operators` computes. Runs in the local kubelet's process."""

import hashlib
import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from emulator.cluster import operators
from emulator.cluster.api import MERGE_PATCH, Api, ApiError, Object, unless_gone
from emulator.cluster.devices import ClusterSnapshot, Hardware, NodeFeatures, shows
from emulator.cluster.pod_status import timestamp
from emulator.cluster.simulations import NodeAgent
from emulator.cluster.store import Store

_log = logging.getLogger("devices")
_MANAGER = "device-simulator"
# Interval of requests for custom resources: their kinds come and go, and they rarely change.
_PACE = 2.0
_SYNC_SECONDS = 30.0
_NODES = "/api/v1/nodes"
_EVENTS = "/api/v1/namespaces/default/events"
_NIC_POLICIES = "/apis/mellanox.com/v1alpha1/nicclusterpolicies"
_CLUSTER_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_FEATURE_RULES = "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules"
_POLICIES = {"network-operator": _NIC_POLICIES, "gpu-operator": _CLUSTER_POLICIES}


class DeviceSimulator:
    """Keeps every simulated node with devices up to date; idle without them.

    It applies labels and resources under its own field manager, so the API server removes those that are no longer
    applied.
    """

    def __init__(self, api: Api, agents: Sequence[NodeAgent]) -> None:
        self._api = api
        self._agents = agents
        self._wake = threading.Event()
        self._nodes = Store(api, _NODES, lambda key: self._wake.set())
        self._pods = Store(api, "/api/v1/pods", lambda key: self._wake.set())
        self._applied: dict[str, NodeFeatures] = {}

    def start(self) -> None:
        """Start the simulation in a thread."""
        threading.Thread(target=self._run, name="devices", daemon=True).start()

    def _run(self) -> None:
        self._nodes.start()
        follows_pods = False
        while True:
            machines = [(node, hardware) for node in self._nodes.all() if (hardware := Hardware.of(node))]
            if machines and not follows_pods:
                self._pods.start()
                follows_pods = True
            try:
                # Without the list of pods, all plugins would look uninstalled.
                if machines and self._pods.wait(_SYNC_SECONDS):
                    self._simulate(machines)
            except ApiError as error:
                _log.info("%s", error)
            except Exception:
                _log.exception("a round failed")
            self._wake.wait(_PACE if machines else None)
            self._wake.clear()

    def _simulate(self, machines: Sequence[tuple[Object, Hardware]]) -> None:
        snapshot = ClusterSnapshot(
            pods=self._pods.all(),
            config_map=lambda namespace, name: self._get(f"/api/v1/namespaces/{namespace}/configmaps/{name}"),
            nic_policies=self._list(_NIC_POLICIES),
            cluster_policies=self._list(_CLUSTER_POLICIES),
            feature_rules=self._list(_FEATURE_RULES),
        )
        nodes: dict[str, tuple[Hardware, NodeFeatures]] = {}
        for node, hardware in machines:
            features = operators.simulate(node, hardware, snapshot, self._agents)
            nodes[node["metadata"]["name"]] = (hardware, features)
            if features != self._applied.get(node["metadata"]["uid"]) or not shows(node, features):
                self._apply(node, features)
            for reason, message in features.notes:
                self._tell(node, reason, message)
        self._show_states(snapshot, nodes)

    def _apply(self, node: Object, features: NodeFeatures) -> None:
        # With the uid, a deleted node is not recreated.
        identity = {"name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
        body: Object = {"apiVersion": "v1", "kind": "Node", "metadata": identity}
        amounts = {"capacity": features.resources, "allocatable": features.resources}
        path = f"{_NODES}/{identity['name']}"
        with unless_gone():
            self._api.apply(f"{path}/status", {**body, "status": amounts}, _MANAGER)
            self._api.apply(path, {**body, "metadata": {**identity, "labels": features.labels}}, _MANAGER)
            self._applied[identity["uid"]] = features
            _log.info("%s shows %s %s", identity["name"], features.labels, features.resources)

    def _show_states(self, snapshot: ClusterSnapshot, nodes: Mapping[str, tuple[Hardware, NodeFeatures]]) -> None:
        for operator, resource, state in operators.policy_states(snapshot, nodes):
            if (resource.get("status") or {}).get("state") != state:
                name = resource["metadata"]["name"]
                with unless_gone():
                    self._api.patch(f"{_POLICIES[operator]}/{name}/status", {"status": {"state": state}}, MERGE_PATCH)
                    _log.info("%s is %s", name, state)

    def _list(self, path: str) -> list[Object]:
        return list((self._get(path) or {}).get("items") or [])

    def _get(self, path: str) -> Object | None:
        with unless_gone():
            return self._api.get(path)
        return None

    def _tell(self, node: Object, reason: str, message: str) -> None:
        """Record an event for the node, once for each message."""
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
            "message": f"{message} (simulated by the local environment)",
            "source": {"component": "emulator-devices"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with unless_gone():
            self._api.create(_EVENTS, event)
