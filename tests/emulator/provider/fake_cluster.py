"""A few REST calls of an API server in memory, enough to see what the provider sends and how it takes answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, dict[str, Any]]


class FakeCluster:
    """ConfigMaps in memory. `requests` records method, path and query; `interfere` may answer in the server's place."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.interfere: Callable[[str, str], Answer | None] = lambda method, path: None
        self._version = 0
        self._lock = threading.Lock()
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                code, answer = cluster.answer(self.command, self.path, json.loads(body) if body else {})
                data = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig for this cluster, as JSON."""
        url = f"http://127.0.0.1:{self._server.server_port}"
        return json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, url: str, body: dict[str, Any]) -> Answer:
        """Play the API server for one request."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        with self._lock:
            self.requests.append((method, parts.path, query))
            interfered = self.interfere(method, parts.path)
            if interfered is not None:
                return interfered
            if parts.path == "/version":
                return 200, {"gitVersion": "v1.34.2"}
            if parts.path == "/api/v1":
                return 200, {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
            if "/configmaps" not in parts.path:
                return 404, {"kind": "Status", "reason": "NotFound", "message": "no such path"}
            return self._object(method, parts.path, query, body)

    def _object(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer:
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return 409, {"kind": "Status", "reason": "AlreadyExists", "message": "it already exists"}
            return 201, self._stored(path, body, query)
        if path not in self.objects:
            return 404, {"kind": "Status", "reason": "NotFound", "message": "not found"}
        if method == "GET":
            return 200, self.objects[path]
        if method == "DELETE":
            del self.objects[path]
            return 200, {"kind": "Status", "status": "Success"}
        if isinstance(body, list):
            return 200, self.objects[path]
        return 200, self._stored(path, body, query)

    def _stored(self, path: str, body: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        self._version += 1
        known = self.objects.get(path, {}).get("metadata", {})
        metadata = {
            **body["metadata"],
            "uid": known.get("uid", f"uid-{self._version}"),
            "resourceVersion": str(self._version),
            "managedFields": [{"manager": query.get("fieldManager"), "operation": "Apply", "fieldsV1": {}}],
        }
        stored = {**body, "metadata": metadata}
        if "dryRun" not in query:
            self.objects[path] = stored
        return stored
