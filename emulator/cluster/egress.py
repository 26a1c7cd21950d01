"""A CONNECT proxy from the API server to Services and to the local node.

The API server calls webhooks and aggregated APIs at a Service's cluster IP. Its egress configuration sends those calls
here. The proxy finds the Service, chooses a ready endpoint and connects to that pod's network. It does not open
connections to other addresses.
"""

import http.server
import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from emulator.cluster.relay import RelayError
from emulator.cluster.routing import NoRouteError, resolve
from emulator.cluster.store import Store

_log = logging.getLogger(__name__)
_REPEAT_SECONDS = 60.0


class Proxy(socketserver.ThreadingUnixStreamServer):
    """Serves CONNECT on a Unix socket.

    connect: (pod address, port) -> a connected socket; its exceptions become the response.
    join: connects two sockets and takes them over; may raise RelayError.
    nodes: host:port of a node -> the handler of connections to it.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        path: Path,
        services: Store,
        slices: Store,
        connect: Callable[[str, int], socket.socket],
        join: Callable[[socket.socket, socket.socket], None],
        nodes: Mapping[str, Callable[[socket.socket], None]],
    ) -> None:
        path.unlink(missing_ok=True)  # from an earlier process
        super().__init__(str(path), _Handler)
        self.nodes = nodes
        self.join = join
        self._services = services
        self._slices = slices
        self._connect = connect
        self._refusals: dict[str, float] = {}

    def start(self) -> None:
        """Accept connections in a thread."""
        threading.Thread(target=self.serve_forever, name="egress proxy", daemon=True).start()

    def open(self, target: str) -> socket.socket:
        """Return a socket connected to the pod behind a Service's address. Raises NoRouteError."""
        host, _, port = target.rpartition(":")
        if not port.isdecimal():
            raise NoRouteError(f"{target!r} is not host:port")
        route = resolve(host.strip("[]"), int(port), self._services.all(), self._slices.all())
        try:
            return self._connect(route.address, route.port)
        except Exception as error:
            raise NoRouteError(f"{target}: pod {route.address} port {route.port}: {error}") from error

    def log_refusal(self, reason: str) -> None:
        """Log a refusal, at most once a minute, because the API server retries while a controller starts."""
        now = time.monotonic()
        if now - self._refusals.get(reason, -_REPEAT_SECONDS) >= _REPEAT_SECONDS:
            self._refusals = {known: at for known, at in self._refusals.items() if now - at < _REPEAT_SECONDS}
            self._refusals[reason] = now
            _log.warning("refused: %s", reason)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"
    timeout = 10.0

    def do_CONNECT(self) -> None:
        node = self.server.nodes.get(self.path)
        try:
            connection = None if node else self.server.open(self.path)
        except NoRouteError as error:
            self._refuse(str(error))
            return
        self.close_connection = True
        self.send_response_only(200)
        self.end_headers()
        if connection is not None:
            try:
                self.server.join(self.connection, connection)
            except RelayError as error:
                self.server.log_refusal(str(error))
        elif node is not None:
            self.connection.settimeout(None)
            node(self.connection)

    def do_GET(self) -> None:
        self._refuse(f"{self.command} is not CONNECT")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the name is the base class's)
        _log.debug(format, *arguments)

    def _refuse(self, reason: str) -> None:
        self.server.log_refusal(reason)
        self.close_connection = True
        # The API server repeats the status line in its own error message.
        self.send_response_only(502, reason)
        self.send_header("Content-Length", "0")
        self.end_headers()
