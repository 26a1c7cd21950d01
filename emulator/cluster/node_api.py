"""The API of a node for the API server: logs of containers, for `kubectl logs` on the local node."""

import http.server
import logging
import re
import select
import socket
import ssl
from collections import deque
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

PORT = 10250
"""Port of a node's kubelet (KubeletConfiguration.port, k8s.io/kubelet/config/v1beta1). No process listens on it
here.
"""

_log = logging.getLogger(__name__)
_TARGET = re.compile(r"^/containerLogs/([a-z0-9.-]+)/([a-z0-9.-]+)/([a-z0-9-]+)$")
_KNOWN = {"follow", "tailLines", "limitBytes", "insecureSkipTLSVerifyBackend"}
_POLL_SECONDS = 0.5


class NodeApi:
    """Serves the API server's connections to the local node, with the cluster's serving certificate."""

    def __init__(self, certificate: Path, key: Path, logs: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._handler = partial(_Handler, logs)

    def serve(self, connection: socket.socket) -> None:
        """Serve one request on a connection, then close it."""
        try:
            with self._context.wrap_socket(connection, server_side=True) as secured:
                self._handler(secured, ("", 0), None)
        except OSError as error:
            _log.info("a request to the node ended early: %s", error)


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, folder: Path, request: Any, client: Any, server: Any) -> None:
        """Serve a request. server: None, because the handler does not use it."""
        self._folder = folder
        super().__init__(request, client, server)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        options = {name: values[-1] for name, values in parse_qs(url.query).items()}
        target = _TARGET.match(url.path)
        if target is None:
            self._answer(501, f"the local kubelet supports only `kubectl logs`; files are in {self._folder}\n")
            return
        path = self._folder / f"{'_'.join(target.groups())}.log"
        if options.keys() - _KNOWN:
            unknown = ", ".join(sorted(options.keys() - _KNOWN))
            self._answer(501, f"the local kubelet does not support the log option {unknown}; see {path}\n")
        elif not path.exists():
            self._answer(404, f"the container has not started: {path} does not exist\n")
        else:
            with path.open("rb") as log:
                self._answer(200)
                self._copy(log, options)

    do_POST = do_GET  # noqa: N815 (the base class's naming)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the name is the base class's)
        _log.debug(format, *arguments)

    def _answer(self, status: int, message: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(message.encode())

    def _copy(self, log: IO[bytes], options: dict[str, str]) -> None:
        left = int(options.get("limitBytes", "-1"))
        tail = options.get("tailLines")
        chunk = log.read(left) if tail is None else b"".join(deque(log, maxlen=int(tail)))
        self.wfile.write(chunk if left < 0 else chunk[:left])
        while options.get("follow") == "true" and left < 0:
            # A readable connection means that the API server closed it, so the follower is gone.
            if select.select([self.connection], [], [], _POLL_SECONDS)[0]:
                return
            self.wfile.write(log.read())
