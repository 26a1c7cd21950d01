"""The proxy through which KubeRay asks the dashboards of Ray clusters, which the pods of teams answer.

KubeRay follows redirects and reads answers of any length (v1.6.2, `controllers/ray/utils/util.go`,
GetRayDashboardClientFunc). A dashboard could redirect it to that of another team, which admits KubeRay and asks nobody
for a password, and so have a program submitted there. This proxy passes on plain answers alone: no redirects, nothing
that is no last answer (1xx), nothing of another length than it says. Each has a connection of its own, since KubeRay
keeps those to a proxy for whatever dashboard comes next.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

LARGEST: Final = 256 * 1024
"""Bytes of an answer. KubeRay asks for the state of a job, and for a list of jobs."""
SECONDS: Final = 2.0
"""For a whole answer, as long as KubeRay itself waits."""
_NOT_PASSED: Final = ("accept-encoding", "connection", "keep-alive", "proxy-connection", "transfer-encoding")
_EMPTY: Final = (204, 205)
"""Answers without a body, after which a client takes what follows for the next answer."""


class RefusedError(Exception):
    """An answer that is not passed on. The message says why."""


class DashboardProxy(BaseHTTPRequestHandler):
    """Answers one request to a proxy by HTTP. A server has one for each connection."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """Pass a request on, and its answer back; answer 502 where that is refused or does not come."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        try:
            status, kind, text = self._asked(body)
        except (RefusedError, OSError, http.client.HTTPException, ValueError) as error:
            status, kind, text = 502, "text/plain", f"{self.path}: {error}".encode()
            self.log_error("%s", text.decode())
        self.close_connection = True
        self.send_response(status)
        self.send_header("Connection", "close")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of the base class

    def _asked(self, body: bytes | None) -> tuple[int, str, bytes]:
        url = urlsplit(self.path)
        if url.scheme != "http" or not url.hostname:
            raise RefusedError("this proxy serves URLs of http alone")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED}
        connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=SECONDS)
        deadline = time.monotonic() + SECONDS
        connection.connect()
        ended = threading.Timer(max(0.0, deadline - time.monotonic()), _end, [connection.sock])
        ended.start()
        try:
            connection.request(self.command, f"{url.path}?{url.query}" if url.query else url.path, body, headers)
            found = connection.getresponse()
            if not (200 <= found.status < 300 or 400 <= found.status < 600):
                raise RefusedError(f"the dashboard answers {found.status}, not with an answer or an error of its own")
            length = 0 if found.status in _EMPTY else found.length
            if length is None or length > LARGEST:
                raise RefusedError(f"the answer says no length, or one of more than {LARGEST} bytes")
            text = found.read(length)
        finally:
            ended.cancel()
            connection.close()
        if len(text) < length or time.monotonic() >= deadline:
            raise RefusedError(f"the answer does not come within {SECONDS:g} seconds")
        return (
            200 if found.status in _EMPTY else found.status,
            found.headers.get("Content-Type") or "application/octet-stream",
            text,
        )

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log no request: KubeRay asks each dashboard every few seconds."""


def _end(connection: socket.socket) -> None:
    """End a connection on which an answer comes too slowly."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serve on a port of this pod alone, which the only argument names."""
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), DashboardProxy).serve_forever()


if __name__ == "__main__":
    main()
