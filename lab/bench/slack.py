"""The slack controller on a large cluster: memory, and time from a lost node to a lower limit.

The controller runs as a process against an API server in this module, with nodes as large as real ones (50 images each)
and the queues of 100 teams. Then each node reports once, the queues report as often as jobs start, and a node is
cordoned. The API server also has the jobs' 20,000 workloads, in case a program lists them.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

from components.kubernetes.node_pool import NodePool
from components.names import FLAVOR
from components.nodes.machines import H100_SXM5
from components.tenancy.slack import SlackControllerArgs, program
from lab.bench.budget import Budget
from tests.local.environment import ROOT

NODES, TEAMS, WORKLOADS = 1500, 100, 20_000
LIMIT_MIB = 100
SECONDS = 40
"""Approximate duration in seconds."""
GPU = "nvidia.com/gpu"
SLACK = "slack-cluster-queue"
NODE_PATH, QUEUE_PATH = "/api/v1/nodes", "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
RUN = """
import sys
from pathlib import Path
from components.kubernetes.in_cluster import Api
from components.tenancy.slack_controller import Controller, Settings
Controller(Api(sys.argv[1], Path(sys.argv[2])), Settings.load(Path(sys.argv[2], "settings.json").read_text())).run()
"""


def node(number: int, version: int, *, cordoned: bool = False) -> dict[str, Any]:
    """Return a node in the form that a kubelet reports."""
    amounts = {"cpu": "224", "memory": "2113411288Ki", GPU: "8", "pods": "110", "ephemeral-storage": "1845Gi"}
    name = f"gpu-node-{number:05}"
    digest = f"{number:05}" * 12
    return {
        "metadata": {
            "name": name,
            "resourceVersion": str(version),
            "labels": {f"feature.node.kubernetes.io/cpu-{index}": "true" for index in range(60)},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:field-{index}": {} for index in range(100)}}],
        },
        "spec": {"unschedulable": cordoned, "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": f"{version}"}],
            "images": [
                {"names": [f"registry.example.org/image-{index}@sha256:{digest}"], "sizeBytes": 10**9 + index}
                for index in range(50)
            ],
        },
    }


def queue(name: str, version: int, gpus: int, held: int) -> dict[str, Any]:
    """Return a queue in the form that Kueue reports."""
    quota = {"cpu": str(gpus * 28), "memory": f"{gpus * 200}Gi", GPU: str(gpus), "pods": "1000"}
    entries = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
    usage = [{"name": resource, "total": str(held), "borrowed": "0"} for resource in quota]
    return {
        "metadata": {"name": name, "resourceVersion": str(version)},
        "spec": {"cohortName": "c", "resourceGroups": [{"flavors": [{"name": FLAVOR, "resources": entries}]}]},
        "status": {"pendingWorkloads": 0, "flavorsReservation": [{"name": FLAVOR, "resources": usage}]},
    }


class Server(ThreadingHTTPServer):
    """The API server. limited: when the slack queue's limit was first written. asked: requested paths."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.watchers: dict[str, Queue[dict[str, Any]]] = {}
        self.limited = threading.Event()
        self.asked: set[str] = set()
        team = (NODES - 1) * 8 // TEAMS
        names = [f"team-{number}-cluster-queue" for number in range(TEAMS)]
        self.queues = {SLACK: NODES * 8 - team * TEAMS, **dict.fromkeys(names, team)}

    def items(self, path: str, first: int, last: int) -> list[dict[str, Any]]:
        """Return objects of a kind by their positions."""
        if path == NODE_PATH:
            return [node(number, 1) for number in range(NODES)[first:last]]
        return [queue(name, 1, gpus, 0) for name, gpus in list(self.queues.items())[first:last]]

    def send(self, path: str, item: dict[str, Any]) -> None:
        self.watchers[path].put({"type": "MODIFIED", "object": item})


class Handler(BaseHTTPRequestHandler):
    """Serves list, watch and patch."""

    server: Server

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        self.server.asked.add(url.path)
        self.send_response(200)
        self.end_headers()
        if "watch" in query:
            events = self.server.watchers.setdefault(url.path, Queue())
            while True:
                self.wfile.write(json.dumps(events.get()).encode() + b"\n")
        first = int(query.get("continue", ["0"])[0])
        last = first + int(query["limit"][0])
        items = self.server.items(url.path, first, last)
        more = str(last) if self.server.items(url.path, last, last + 1) else ""
        content = {"metadata": {"resourceVersion": "1", "continue": more}, "items": items}
        self.wfile.write(json.dumps(content).encode())

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if urlsplit(self.path).path.endswith(SLACK):
            self.server.limited.set()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
        """Keep requests out of the figures."""


def lines(budget: Budget) -> Iterator[str]:
    """Yield the figures, if the time limit allows."""
    if budget.allows("slack controller", SECONDS):
        yield measure()


def measure() -> str:
    """Measure; return the figures. Fails if the controller exceeds its limits."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        pool = NodePool(count=NODES, shape=H100_SXM5.shape())
        args = SlackControllerArgs(queue=SLACK, teams=[], image="python", pools=[pool])
        tolerant = json.loads(program(args).data()["settings.json"])
        tolerant["pools"][0]["tolerations"] = [{"key": GPU, "operator": "Exists"}]
        Path(folder, "settings.json").write_text(json.dumps(tolerant))
        Path(folder, "token").write_text("token")
        base = f"http://127.0.0.1:{server.server_port}"
        command = [sys.executable, "-c", RUN, base, folder]
        began = time.monotonic()
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "no_proxy": "127.0.0.1"}) as process:
            try:
                return _figures(server, process.pid, began)
            finally:
                process.kill()


def _figures(server: Server, pid: int, began: float) -> str:
    _until(lambda: len(server.watchers) == 2, 120)
    read = time.monotonic() - began
    for number in range(NODES):
        server.send(NODE_PATH, node(number, 2))
    names = [name for name in server.queues if name != SLACK]
    for number in range(WORKLOADS):
        name = names[number % len(names)]
        server.send(QUEUE_PATH, queue(name, 2, server.queues[name], number % 100))
    _until(lambda: all(events.empty() for events in server.watchers.values()), 300)
    assert not server.limited.is_set(), "a limit was written while all was well"
    lost = time.monotonic()
    server.send(NODE_PATH, node(0, 3, cordoned=True))
    assert server.limited.wait(30), "the limit was not lowered"
    reaction, most = time.monotonic() - lost, _most_mib(pid)
    assert most < LIMIT_MIB, f"the slack controller took {most:.0f} MiB"
    assert server.asked == {NODE_PATH, QUEUE_PATH}
    return (
        f"slack controller, {NODES} nodes, {TEAMS} teams, {WORKLOADS} workloads: {most:.0f} MiB at most"
        f" (bound {LIMIT_MIB}), all read after {read:.1f} s, limit lower {reaction:.2f} s after a cordon"
    )


def _until(condition: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the controller does not keep up"
        time.sleep(0.05)


def _most_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    print(measure())
