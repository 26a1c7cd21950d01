"""The local kubelet: runs the pods of the node `local-controllers` as processes of this machine.

Pods of images that `images` knows run unchanged: own command, arguments, ports, paths, volumes and service account, in
namespaces of their own, without root's rights on the machine. The API server reaches their Services through `routing`.
A pod with any other image is played: Running and Ready without a process, or Succeeded after a moment when its restart
policy lets it end. Its status says so (reason `Played`), and nobody looks at its volumes, environment and probes.

What it does not do: pull images, limit CPU and memory, give pods a network beyond the API server and what the API
server calls, run them as other users, init containers, lifecycle hooks, exec and gRPC probes, volumes other than
ConfigMap, Secret, projected, downward API and emptyDir. A pod that asks for what would be left out silently stays
Pending with a message. `kubectl exec` and `port-forward` do not work. A container's output, of all its runs, is in
`<state>/logs/<namespace>_<pod>_<container>.log`, and `kubectl logs` shows it (with --tail, --limit-bytes and --follow).
"""

from __future__ import annotations

import argparse
import ipaddress
import logging
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from emulator.cluster import node as local_node
from emulator.cluster import node_api
from emulator.cluster.api import STRATEGIC_MERGE_PATCH, Api, ApiError, Object, Store
from emulator.cluster.credentials import Account, read_kubeconfig
from emulator.cluster.device_simulator import DeviceSimulator
from emulator.cluster.layout import NODE_NAME, POD_RANGE, Layout
from emulator.cluster.node_api import NodeApi
from emulator.cluster.pod import PodWorker
from emulator.cluster.pod_sandbox import SandboxError, isolation
from emulator.cluster.ready import announce
from emulator.cluster.routing import Proxy
from emulator.cluster.simulations import NodeAgent, SimulationError, node_agents
from emulator.paths import Paths

_log = logging.getLogger("kubelet")
_SYNC_SECONDS = 30.0
_STOP_SECONDS = 7.0
_ADOPT_SECONDS = 30.0
_RENEW_TOKEN_AT = 0.8  # of its lifetime, as a kubelet does


class Kubelet:
    """The pods of the node and what they need from the API server; see `emulator.cluster.pod.Node`."""

    def __init__(
        self, layout: Layout, account: Account, command: Sequence[str], agents: Sequence[NodeAgent] = ()
    ) -> None:
        server = urlsplit(account.server)
        self.isolation = command
        self.api_address = (server.hostname or "127.0.0.1", server.port or 443)
        self.address = local_node.NODE_ADDRESS
        self.binaries = layout.paths.bin
        self.pods_folder = layout.pods
        self.logs = layout.paths.logs
        self._api = Api(account)
        self._devices = DeviceSimulator(self._api, agents)
        self._workers: dict[str, PodWorker] = {}
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str, int], tuple[float, str]] = {}
        self._addresses = ipaddress.ip_network(POD_RANGE).hosts()
        self._pods = Store(
            self._api,
            "/api/v1/pods",
            selector={"fieldSelector": f"spec.nodeName={NODE_NAME}"},
            changed=self._pod_changed,
        )
        self._objects = {
            "ConfigMap": Store(self._api, "/api/v1/configmaps", changed=self._object_changed),
            "Secret": Store(self._api, "/api/v1/secrets", changed=self._object_changed),
        }
        self._services = Store(self._api, "/api/v1/services")
        self._slices = Store(self._api, "/apis/discovery.k8s.io/v1/endpointslices")
        logs = NodeApi(layout.secret("serving.crt"), layout.secret("serving.key"), layout.paths.logs)
        nodes = {f"{NODE_NAME}:{node_api.PORT}": logs.serve}
        self._ready_socket = layout.kubelet_socket
        self._proxy = Proxy(layout.egress_socket, self._services, self._slices, self._connect, nodes)

    def run(self, stop: threading.Event) -> None:
        """Play the kubelet until told to stop, then end every pod's processes.

        Raises TimeoutError when the API server does not answer.
        """
        stores = (*self._objects.values(), self._services, self._slices, self._pods)
        for store in stores:
            store.start()
        deadline = time.monotonic() + _SYNC_SECONDS
        for store in stores:
            if not store.wait(max(0.0, deadline - time.monotonic())):
                raise TimeoutError(f"the API server did not list what the kubelet needs in {_SYNC_SECONDS:.0f} s")
        self._proxy.start()
        local_node.register(self._api)
        local_node.start_heartbeat(self._api)
        self._devices.start()
        self._wait_for_adopted(stop)
        announce(self._ready_socket)
        _log.info("node %s is Ready", NODE_NAME)
        stop.wait()
        self._stop_pods()

    def _wait_for_adopted(self, stop: threading.Event) -> None:
        """Wait, within bounds, until the pods that were ready in an earlier life of the kubelet are ready again."""
        with self._lock:
            adopted = [worker for worker in self._workers.values() if worker.was_ready]
        deadline = time.monotonic() + _ADOPT_SECONDS
        while time.monotonic() < deadline and not all(worker.ready for worker in adopted):
            if stop.wait(0.1):
                return

    def pod(self, key: tuple[str, str]) -> Object | None:
        """Return a pod of this node as the API server has it."""
        return self._pods.get(*key)

    def lookup(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return a ConfigMap or a Secret."""
        found = self._objects[kind].get(namespace, name)
        # The items of a list carry no kind.
        return None if found is None else {**found, "kind": kind}

    def token(self, pod: Object, audience: str, seconds: int) -> str:
        """Return a token of the pod's service account, bound to the pod and renewed before it expires."""
        metadata = pod["metadata"]
        key = (metadata["uid"], audience, seconds)
        renew_at, token = self._tokens.get(key, (0.0, ""))
        if time.time() < renew_at:
            return token
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [audience] if audience else [],
                "expirationSeconds": seconds,
                "boundObjectRef": bound,
            },
        }
        account = pod["spec"].get("serviceAccountName") or "default"
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        status = self._api.create(path, request)["status"]
        # The API server may extend the validity; what was asked for decides when to renew.
        expires = datetime.fromisoformat(status["expirationTimestamp"]).timestamp()
        lifetime = min(seconds, expires - time.time())
        self._tokens[key] = (time.time() + _RENEW_TOKEN_AT * lifetime, status["token"])
        return str(status["token"])

    def write_status(self, pod: Object, status: Object) -> None:
        """Write the pod's status; a pod that is gone or was replaced is left alone."""
        body: Object = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            self._api.patch(f"{_path(pod)}/status", body, STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def remove(self, pod: Object) -> None:
        """Delete the pod for good, now that its processes have ended."""
        preconditions = {"uid": pod["metadata"]["uid"]}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        try:
            self._api.delete(_path(pod), {**body, "preconditions": preconditions})
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _pod_changed(self, key: tuple[str, str]) -> None:
        pod = self._pods.get(*key)
        with self._lock:
            for uid, worker in list(self._workers.items()):
                if not worker.thread.is_alive():
                    del self._workers[uid]
                    self._tokens = {name: token for name, token in self._tokens.items() if name[0] != uid}
                else:
                    worker.wake()
            if pod is not None and pod["metadata"]["uid"] not in self._workers:
                worker = PodWorker(self, pod, self._address_of(pod))
                self._workers[worker.uid] = worker
                worker.thread.start()

    def _object_changed(self, key: tuple[str, str]) -> None:
        with self._lock:
            for worker in self._workers.values():
                if worker.namespace == key[0]:
                    worker.wake()

    def _address_of(self, pod: Object) -> str:
        """Return the pod's address: the one in its status, else the next that no pod of this node has."""
        given = (pod.get("status") or {}).get("podIP")
        if given:
            return str(given)
        taken = {worker.address for worker in self._workers.values()}
        taken |= {found.get("status", {}).get("podIP") for found in self._pods.all()}
        while True:
            try:
                address = str(next(self._addresses))
            except StopIteration:
                self._addresses = ipaddress.ip_network(POD_RANGE).hosts()
                continue
            if address not in taken:
                return address

    def _connect(self, address: str, port: int) -> socket.socket:
        with self._lock:
            worker = next((found for found in self._workers.values() if found.address == address), None)
        if worker is None:
            raise SandboxError("it is not a pod of the local kubelet, and simulated pods answer nothing")
        return worker.connect(port)

    def _stop_pods(self) -> None:
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            worker.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        for worker in workers:
            worker.thread.join(max(0.0, deadline - time.monotonic()))


def _path(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kubelet of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.cluster.kubelet", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    layout = Layout(Paths.of(root=options.root, state=options.state))
    try:
        command, agents = isolation(), node_agents(layout.simulations)
    except (SandboxError, SimulationError) as error:
        _log.error("%s", error)
        return 1
    # Whatever an earlier life left here belongs to processes that ended with it.
    shutil.rmtree(layout.pods, ignore_errors=True)
    layout.make_folders()
    account = read_kubeconfig(layout.secret("kubelet.kubeconfig").read_text())

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    signal.signal(signal.SIGINT, lambda number, frame: stop.set())
    try:
        Kubelet(layout, account, command, agents).run(stop)
    except (ApiError, TimeoutError) as error:
        _log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
