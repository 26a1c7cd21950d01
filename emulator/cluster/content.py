"""Fills a local cluster with a copy of another cluster's objects before controllers start. The result is a replica.

Most objects are created normally. Objects whose identity matters (owner, age, admission) are written to etcd with their
uid, creation time and status, because the API server does not let a client set these.
"""

import base64
import contextlib
import json
import socket
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, TypedDict

from emulator.cluster.api import Api, ApiError, Object, path_of, unless_gone
from emulator.cluster.layout import Layout
from runner.files import write_private

_MARKER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "content", "namespace": "kube-system"}}
_MARKER_PATH: Final = "/api/v1/namespaces/kube-system/configmaps/content"
_BATCH: Final = 100
"""Writes in a transaction; etcd's limit is 128 (`--max-txn-ops`)."""
_KIND_SECONDS: Final = 30.0
_KEYS: Final = {"nodes": "minions"}
"""Kinds that etcd stores under another name than their plural (Kubernetes,
`pkg/registry/core/rest/storage_core.go`).
"""


class Content(TypedDict):
    """The content of a replica, in the order of its creation.

    first: created.
    exact: written unchanged.
    last: created after the others.
    """

    first: list[Object]
    exact: list[Object]
    last: list[Object]


def save(layout: Layout, content: Content) -> None:
    """Save the content for the cluster's next start."""
    write_private(layout.content, json.dumps(content))


def controllers(layout: Layout) -> frozenset[str]:
    """Return the namespaces of the controllers in a cluster's content."""
    content: Content = json.loads(layout.content.read_text())
    return frozenset(item["metadata"]["namespace"] for item in content["last"] if item["kind"] == "Deployment")


def is_complete(api: Api) -> bool:
    """Tell whether the whole content exists."""
    try:
        api.get(_MARKER_PATH)
    except ApiError:
        return False
    return True


def fill(api: Api, etcd: Path, content: Content) -> None:
    """Fill a cluster. etcd: its socket. Raises ApiError if the API server rejects an object."""
    for document in content["first"]:
        _create(api, document)
    puts = [(_key(api, document), document) for document in content["exact"]]
    for start in range(0, len(puts), _BATCH):
        _put(etcd, puts[start : start + _BATCH])
    for document in [*content["last"], dict(_MARKER)]:
        _create(api, document)


def _create(api: Api, document: Object) -> None:
    path = _path(api, document)
    with unless_gone():
        api.create(path.rpartition("/")[0], document)


def _path(api: Api, document: Object) -> str:
    """Return the API path of an object, as soon as the API server has its kind."""
    deadline = time.monotonic() + _KIND_SECONDS
    while True:
        try:
            return path_of(api, document)
        except ApiError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _key(api: Api, document: Object) -> str:
    """Return the key of an object in etcd. The key of a custom resource has the group before the plural."""
    *_, plural, name = _path(api, document).split("/")
    namespace = document["metadata"].get("namespace")
    group = document["apiVersion"].rpartition("/")[0]
    is_defined = "." in group and not group.endswith(".k8s.io")
    parts = [*([group] if is_defined else []), _KEYS.get(plural, plural), *([namespace] if namespace else []), name]
    return "/registry/" + "/".join(parts)


def _put(etcd: Path, puts: Sequence[tuple[str, Object]]) -> None:
    """Write objects in one transaction through etcd's gateway (`api/etcdserverpb/rpc.proto`: POST /v3/kv/txn)."""
    operations = [{"requestPut": {"key": _coded(key), "value": _coded(json.dumps(value))}} for key, value in puts]
    with contextlib.closing(_Connection(etcd)) as connection:
        connection.request("POST", "/v3/kv/txn", json.dumps({"success": operations}))
        response = connection.getresponse()
        said = response.read()
    if response.status != 200:
        raise ApiError(response.status, f"etcd rejects the content: {said[:500]!r}")


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class _Connection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
