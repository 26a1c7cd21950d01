"""The way from the API server to Services: a CONNECT proxy that knows Services, endpoints and the local pods.

The API server calls webhooks and aggregated APIs at a Service's cluster IP. Its egress configuration sends those calls
here; the proxy finds the Service, takes a ready endpoint and connects to that pod's own network. It never opens a
connection of its own to any address.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.cluster.api import Object, Store
from emulator.cluster.relay import relay

_log = logging.getLogger(__name__)
_REQUEST_LIMIT = 8192
_REPEAT_SECONDS = 60.0
_SERVICE_NAME = "kubernetes.io/service-name"  # label of an EndpointSlice, k8s.io/api/discovery/v1


class NoRouteError(Exception):
    """There is no way to a target; the message is one line that says why."""


@dataclass(frozen=True)
class Route:
    """A ready endpoint: the pod's address and the port in the pod."""

    address: str
    port: int


def resolve(host: str, port: int, services: Iterable[Object], slices: Iterable[Object]) -> Route:
    """Return a ready endpoint for a Service's cluster IP, or its name `name.namespace.svc`, and port.

    Raises NoRouteError when the Service, the port or a ready endpoint is missing.
    """
    service = next((found for found in services if _is(found, host)), None)
    if service is None:
        raise NoRouteError(f"{host} is not the address of a Service")
    namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
    wanted = next((item for item in service["spec"].get("ports") or [] if item["port"] == port), None)
    if wanted is None:
        raise NoRouteError(f"Service {namespace}/{name} has no port {port}")
    for found in slices:
        metadata = found["metadata"]
        if metadata["namespace"] != namespace or (metadata.get("labels") or {}).get(_SERVICE_NAME) != name:
            continue
        target = next((item for item in found.get("ports") or [] if _same_port(item, wanted)), None)
        if target is None or not target.get("port"):
            continue
        for endpoint in found.get("endpoints") or []:
            # An absent condition counts as ready (EndpointConditions, k8s.io/api/discovery/v1).
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                return Route(endpoint["addresses"][0], target["port"])
    raise NoRouteError(f"Service {namespace}/{name} has no ready endpoint for port {port}")


def _is(service: Object, host: str) -> bool:
    spec, metadata = service["spec"], service["metadata"]
    names = (f"{metadata['name']}.{metadata['namespace']}.svc", f"{metadata['name']}.{metadata['namespace']}")
    return host == spec.get("clusterIP") or host.removesuffix(".cluster.local") in names


def _same_port(endpoint_port: Object, service_port: Object) -> bool:
    return (endpoint_port.get("name") or "") == (service_port.get("name") or "")


class Proxy:
    """The CONNECT proxy on a Unix socket.

    connect: (pod address, port) -> a socket connected to that port in the pod's network; raises an Exception with a
             one-line reason when that cannot be.
    nodes:   `name:port` of a node's own API -> what answers a connection to it and closes it.
    """

    def __init__(
        self,
        path: Path,
        services: Store,
        slices: Store,
        connect: Callable[[str, int], socket.socket],
        nodes: Mapping[str, Callable[[socket.socket], None]],
    ) -> None:
        self._services = services
        self._slices = slices
        self._connect = connect
        self._nodes = nodes
        self._path = path
        self._refusals: dict[str, float] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def start(self) -> None:
        """Listen, in place of whoever left a socket there, and accept connections in a thread."""
        self._path.unlink(missing_ok=True)
        self._listener.bind(str(self._path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, name="egress proxy", daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            client.settimeout(10.0)
            target = _read_target(client)
            node = self._nodes.get(target)
            connection = None if node else self._open(target)
        except (NoRouteError, OSError) as error:
            self._log_refusal(str(error))
            # The API server repeats the status line in its own error message.
            with contextlib.suppress(OSError), client:
                client.sendall(f"HTTP/1.1 502 {error}\r\nContent-Length: 0\r\n\r\n".encode())
            return
        try:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            client.settimeout(None)
        except OSError:
            client.close()
            if connection is not None:
                connection.close()
            return
        if connection is not None:
            relay(client, connection)
        elif node is not None:
            node(client)

    def _log_refusal(self, reason: str) -> None:
        """Log a refusal, the same one once a minute: the API server asks on and on while a controller starts."""
        now = time.monotonic()
        if now - self._refusals.get(reason, -_REPEAT_SECONDS) >= _REPEAT_SECONDS:
            self._refusals = {known: at for known, at in self._refusals.items() if now - at < _REPEAT_SECONDS}
            self._refusals[reason] = now
            _log.warning("refused: %s", reason)

    def _open(self, target: str) -> socket.socket:
        host, _, port = target.rpartition(":")
        if not port.isdecimal():
            raise NoRouteError(f"{target!r} is not host:port")
        route = resolve(host.strip("[]"), int(port), self._services.all(), self._slices.all())
        try:
            return self._connect(route.address, route.port)
        except Exception as error:
            raise NoRouteError(f"{target}: pod {route.address} port {route.port}: {error}") from error


def _read_target(client: socket.socket) -> str:
    request = b""
    while b"\r\n\r\n" not in request:
        chunk = client.recv(4096)
        request += chunk
        if not chunk or len(request) > _REQUEST_LIMIT:
            raise NoRouteError("not an HTTP request")
    method, _, rest = request.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    if method != "CONNECT":
        raise NoRouteError(f"{method} is not CONNECT")
    return rest.partition(" ")[0]
