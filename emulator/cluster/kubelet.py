"""The local kubelet: runs the pods of the node `local-controllers` as processes of this machine.

Pods with images in `images` run unchanged, with their own command, arguments, ports, paths, volumes and service
account. They run in their own namespaces, without root rights on the machine. The API server reaches their Services
through `egress`. All other pods are left to KWOK: Running and Ready without a process, or Succeeded after a moment if
their restart policy lets them end. Their status has the reason `Simulated`. Their volumes and probes are ignored.

Not supported: pulling images, limits of CPU and memory, networks other than the API server and its calls, other users,
init containers, lifecycle hooks, exec and gRPC probes, and volumes other than ConfigMap, Secret, projected, downward
API and emptyDir. A pod that needs one of these stays Pending with a message, instead of running without it. `kubectl
exec` and `port-forward` do not work. The output of all runs of a container is in
`<state>/logs/<namespace>_<pod>_<container>.log`. `kubectl logs` shows it (with --tail, --limit-bytes and --follow).
"""

import argparse
import ipaddress
import itertools
import logging
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from emulator.cluster import node, node_api
from emulator.cluster.api import MERGE_PATCH, Api, ApiError, Object
from emulator.cluster.content import controllers
from emulator.cluster.credentials import Account, read_kubeconfig
from emulator.cluster.device_simulator import DeviceSimulator
from emulator.cluster.egress import Proxy
from emulator.cluster.images import why_simulated
from emulator.cluster.layout import NODE_NAME, POD_RANGE, Layout
from emulator.cluster.node_api import NodeApi
from emulator.cluster.pod import PodWorker
from emulator.cluster.pod_content import Host
from emulator.cluster.pod_sandbox import SandboxError, isolation
from emulator.cluster.provisioners import Provisioners
from emulator.cluster.ready import announce
from emulator.cluster.relay import PROGRAM, Relay, RelayError
from emulator.cluster.simulations import NodeAgent, SimulationError, node_agents
from emulator.cluster.store import Key, Store
from emulator.paths import Paths

_log = logging.getLogger("kubelet")
_SIMULATED = "emulator/simulated"  # annotation of a pod that is left to KWOK, with the reason; see stages.yaml
_SYNC_SECONDS = 30.0
_STOP_SECONDS = 7.0
_ADOPT_SECONDS = 30.0
_RESYNC_SECONDS = 10.0


class Kubelet:
    """The pods of the node, their objects in the API server, and the way from the API server to them.

    runs_in: namespaces whose pods run as processes, None for all.
    """

    def __init__(
        self,
        layout: Layout,
        account: Account,
        command: Sequence[str],
        agents: Sequence[NodeAgent],
        runs_in: frozenset[str] | None = None,
    ) -> None:
        self._runs_in = runs_in
        self._api = Api(account)
        self._devices = DeviceSimulator(self._api, agents)
        self._volumes = Provisioners(account)
        self._workers: dict[str, PodWorker] = {}
        self._lock = threading.Lock()
        self._addresses = itertools.cycle(map(str, ipaddress.ip_network(POD_RANGE).hosts()))
        own = f"/api/v1/pods?fieldSelector=spec.nodeName={NODE_NAME}"
        self._pods = Store(self._api, own, self._pod_changed)
        self._objects = {
            "ConfigMap": Store(self._api, "/api/v1/configmaps", self._object_changed),
            "Secret": Store(self._api, "/api/v1/secrets", self._object_changed),
        }
        services = Store(self._api, "/api/v1/services")
        slices = Store(self._api, "/apis/discovery.k8s.io/v1/endpointslices")
        self._stores = (*self._objects.values(), services, slices, self._pods)
        server = urlsplit(account.server)
        self._relay = Relay(layout.paths.bin / PROGRAM)
        self._host = Host(
            api=self._api,
            binaries=layout.paths.bin,
            pods=layout.pods,
            logs=layout.paths.logs,
            isolation=command,
            server=(server.hostname or "127.0.0.1", server.port or 443),
            join=self._relay.join,
            pod=self._pods.get,
            lookup=self._lookup,
        )
        logs = NodeApi(layout.secret("apiserver.crt"), layout.secret("apiserver.key"), layout.paths.logs)
        nodes = {f"{NODE_NAME}:{node_api.PORT}": logs.serve}
        self._proxy = Proxy(layout.socket("egress"), services, slices, self._connect, self._relay.join, nodes)
        self._ready_socket = layout.socket("kubelet")

    def run(self, stop: threading.Event) -> None:
        """Run the kubelet until `stop` is set, then stop the processes of all pods.

        Raises TimeoutError if the API server does not respond, RelayError if the relay's process ends.
        """
        for store in self._stores:
            store.start()
        deadline = time.monotonic() + _SYNC_SECONDS
        if not all(store.wait(max(0.0, deadline - time.monotonic())) for store in self._stores):
            raise TimeoutError(f"the API server did not list what the kubelet needs in {_SYNC_SECONDS:.0f} s")
        self._proxy.start()
        node.register(self._api)
        self._devices.start()
        self._volumes.start()
        self._wait_for_adopted(stop)
        announce(self._ready_socket)
        _log.info("node %s is ready", NODE_NAME)
        while not stop.wait(_RESYNC_SECONDS):
            if self._relay.ended:
                raise RelayError("the process that relays the pods' connections has ended")
            try:
                node.register(self._api)
                for pod in self._pods.all():
                    self._pod_changed((pod["metadata"]["namespace"], pod["metadata"]["name"]))
            except ApiError as error:
                _log.info("%s", error)
        self._stop_pods()
        self._relay.close()

    def _wait_for_adopted(self, stop: threading.Event) -> None:
        """Wait until the pods that were ready under an earlier kubelet are ready again, or the time is over."""
        with self._lock:
            adopted = [worker for worker in self._workers.values() if worker.was_ready]
        deadline = time.monotonic() + _ADOPT_SECONDS
        while time.monotonic() < deadline and not all(worker.ready for worker in adopted):
            if stop.wait(0.1):
                return

    def _lookup(self, kind: str, namespace: str, name: str) -> Object | None:
        found = self._objects[kind].get(namespace, name)
        # Items of a list have no kind.
        return None if found is None else {**found, "kind": kind}

    def _pod_changed(self, key: Key) -> None:
        pod = self._pods.get(*key)
        with self._lock:
            self._workers = {uid: worker for uid, worker in self._workers.items() if worker.thread.is_alive()}
            for worker in self._workers.values():
                worker.wake()
            if pod is None or pod["metadata"]["uid"] in self._workers:
                return
            why = why_simulated(pod) or why_kept_out(pod, self._runs_in)
            if why:
                self._leave_to_kwok(key, pod, why)
            else:
                worker = PodWorker(self._host, pod, self._address_of(pod))
                self._workers[worker.uid] = worker
                worker.thread.start()

    def _leave_to_kwok(self, key: Key, pod: Object, why: str) -> None:
        if _SIMULATED not in (pod["metadata"].get("annotations") or {}):
            body: Object = {"metadata": {"uid": pod["metadata"]["uid"], "annotations": {_SIMULATED: why}}}
            try:
                self._api.patch(f"/api/v1/namespaces/{key[0]}/pods/{key[1]}", body, MERGE_PATCH)
            except ApiError as error:  # the next resync tries again, unless the pod is deleted
                _log.info("%s", error)

    def _object_changed(self, key: Key) -> None:
        with self._lock:
            for worker in self._workers.values():
                if worker.namespace == key[0]:
                    worker.wake()

    def _address_of(self, pod: Object) -> str:
        """Return the pod's address: the one in its status, else the next free one of this node."""
        given = (pod.get("status") or {}).get("podIP")
        taken = {worker.address for worker in self._workers.values()}
        taken |= {found.get("status", {}).get("podIP") for found in self._pods.all()}
        return str(given or next(address for address in self._addresses if address not in taken))

    def _connect(self, address: str, port: int) -> socket.socket:
        with self._lock:
            worker = next((found for found in self._workers.values() if found.address == address), None)
        if worker is None:
            raise SandboxError("it is not a pod of the local kubelet, and simulated pods do not respond")
        return worker.connect(port)

    def _stop_pods(self) -> None:
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            worker.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        for worker in workers:
            worker.thread.join(max(0.0, deadline - time.monotonic()))


def why_kept_out(pod: Object, runs_in: frozenset[str] | None) -> str:
    """Return why a pod does not run on a replica of another cluster, empty for a controller's pod.

    A question about a job must not run the job, on whichever node it is.
    """
    is_kept_out = runs_in is not None and pod["metadata"]["namespace"] not in runs_in
    return "a replica of another cluster runs only its controllers" if is_kept_out else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kubelet of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.cluster.kubelet", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    parser.add_argument("--content", action="store_true", help="run only the controllers in the cluster's content")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    layout = Layout(Paths.of(root=options.root, state=options.state))
    # Files of an earlier kubelet belong to processes that ended with it.
    shutil.rmtree(layout.pods, ignore_errors=True)
    layout.make_folders()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    signal.signal(signal.SIGINT, lambda number, frame: stop.set())
    try:
        account = read_kubeconfig(layout.secret("kubelet.kubeconfig").read_text())
        runs_in = controllers(layout) if options.content else None
        Kubelet(layout, account, isolation(), node_agents(layout.simulations), runs_in).run(stop)
    except (ApiError, RelayError, SandboxError, SimulationError, TimeoutError) as error:
        _log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
