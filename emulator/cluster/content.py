"""Fills a local cluster with what another one holds, before anything acts on it: a replica to try things out on.

Most objects are created as anybody would. Those whose identity counts (who owns whom, who was first, what has been
admitted) are written to etcd as they are, with uid, creation time and status, which the API server gives to nobody.
"""

from __future__ import annotations

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
"""Writes in a transaction; etcd takes 128 (`--max-txn-ops`)."""
_KIND_SECONDS: Final = 30.0
_KEYS: Final = {"nodes": "minions"}
"""Where etcd has kinds that are not under their own plural (Kubernetes, `pkg/registry/core/rest/storage_core.go`)."""


class Content(TypedDict):
    """What a cluster is filled with, in this order.

    first: created. exact: written as it is. last: created, when the others are there.
    """

    first: list[Object]
    exact: list[Object]
    last: list[Object]


def save(layout: Layout, content: Content) -> None:
    """Keep what a cluster is filled with when it starts."""
    write_private(layout.content, json.dumps(content))


def controllers(layout: Layout) -> frozenset[str]:
    """Return the namespaces of the controllers that a cluster is filled with."""
    content: Content = json.loads(layout.content.read_text())
    return frozenset(item["metadata"]["namespace"] for item in content["last"] if item["kind"] == "Deployment")


def is_complete(api: Api) -> bool:
    """Tell whether everything is there."""
    try:
        api.get(_MARKER_PATH)
    except ApiError:
        return False
    return True


def fill(api: Api, etcd: Path, content: Content) -> None:
    """Fill a cluster. etcd: its socket. Raises ApiError where the API server refuses an object."""
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
    """Return where an object is in the API, as soon as the API server knows its kind."""
    deadline = time.monotonic() + _KIND_SECONDS
    while True:
        try:
            return path_of(api, document)
        except ApiError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _key(api: Api, document: Object) -> str:
    """Return etcd's key of an object: kinds that were defined in the cluster have their group before their plural."""
    *_, plural, name = _path(api, document).split("/")
    namespace = document["metadata"].get("namespace")
    group = document["apiVersion"].rpartition("/")[0]
    is_defined = "." in group and not group.endswith(".k8s.io")
    parts = [*([group] if is_defined else []), _KEYS.get(plural, plural), *([namespace] if namespace else []), name]
    return "/registry/" + "/".join(parts)


def _put(etcd: Path, puts: Sequence[tuple[str, Object]]) -> None:
    """Write objects in one transaction, by etcd's gateway (etcd, `api/etcdserverpb/rpc.proto`: POST /v3/kv/txn)."""
    operations = [{"requestPut": {"key": _coded(key), "value": _coded(json.dumps(value))}} for key, value in puts]
    with contextlib.closing(_Connection(etcd)) as connection:
        connection.request("POST", "/v3/kv/txn", json.dumps({"success": operations}))
        response = connection.getresponse()
        said = response.read()
    if response.status != 200:
        raise ApiError(response.status, f"etcd does not take what is written: {said[:500]!r}")


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
