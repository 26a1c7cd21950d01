"""Filling a replica with another cluster's content: order, keys, identity."""

import base64
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from emulator.cluster.api import ApiError
from emulator.cluster.content import Content, fill, is_complete
from tests.unit.servers import POLL

KINDS = {
    "/api/v1": [("Node", "nodes", False), ("Pod", "pods", True), ("ConfigMap", "configmaps", True)],
    "/apis/apps/v1": [("Deployment", "deployments", True)],
    "/apis/rbac.authorization.k8s.io/v1": [("ClusterRole", "clusterroles", False)],
    "/apis/kueue.x-k8s.io/v1beta2": [("Workload", "workloads", True)],
}


class FakeApi:
    """Knows some kinds, and records created objects and writes to etcd."""

    def __init__(self) -> None:
        self.created: list[str] = []

    def get(self, path: str) -> dict[str, Any]:
        if path in KINDS:
            return {
                "resources": [{"kind": kind, "name": name, "namespaced": scoped} for kind, name, scoped in KINDS[path]]
            }
        if path in self.created:
            return {}
        raise ApiError(404, path)

    def create(self, path: str, body: dict[str, Any]) -> None:
        where = f"{path}/{body['metadata']['name']}"
        if where in self.created:
            raise ApiError(409, "it is there already")
        self.created.append(where)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[tuple[Path, list[Any]]]:
    """Yield a socket that accepts etcd's transactions, and the transactions."""
    taken: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.append((self.path, [item["requestPut"] for item in body["success"]]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            return super().get_request()[0], ("local", 0)

    path = tmp_path / "etcd.sock"
    with Server(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, args=POLL, daemon=True).start()
        yield path, taken
        server.shutdown()


def thing(version: str, kind: str, name: str, namespace: str | None = None, **metadata: Any) -> dict[str, Any]:
    scope = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **scope, **metadata}}


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def test_jobs_and_queues_are_written_unchanged_and_other_objects_are_created(etcd: tuple[Path, list[Any]]) -> None:
    path, taken = etcd
    api = FakeApi()
    workload = thing(
        "kueue.x-k8s.io/v1beta2", "Workload", "job", "blue", uid="1", creationTimestamp="2026-01-01T00:00:00Z"
    )
    role = thing("rbac.authorization.k8s.io/v1", "ClusterRole", "edit")
    content: Content = {
        "first": [role, role],
        "exact": [thing("v1", "Node", "gpu-node-0"), thing("v1", "Pod", "job-0", "blue"), workload],
        "last": [thing("apps/v1", "Deployment", "kueue", "system")],
    }
    assert not is_complete(api)
    fill(api, path, content)
    assert is_complete(api)
    ((where, puts),) = taken
    assert where == "/v3/kv/txn"
    assert [decoded(put["key"]) for put in puts] == [
        "/registry/minions/gpu-node-0",
        "/registry/pods/blue/job-0",
        "/registry/kueue.x-k8s.io/workloads/blue/job",
    ]
    assert json.loads(decoded(puts[2]["value"])) == workload
    assert api.created == [
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit",
        "/apis/apps/v1/namespaces/system/deployments/kueue",
        "/api/v1/namespaces/kube-system/configmaps/content",
    ]


def test_no_transaction_is_larger_than_etcd_takes(etcd: tuple[Path, list[Any]]) -> None:
    path, taken = etcd
    nodes = [thing("v1", "Node", f"node-{index}") for index in range(250)]
    fill(FakeApi(), path, {"first": [], "exact": nodes, "last": []})
    assert [len(puts) for _, puts in taken] == [100, 100, 50]
