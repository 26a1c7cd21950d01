"""The proxy through which KubeRay asks the dashboards of Ray clusters, which the pods of teams answer.

KubeRay follows redirects and reads answers of any length (v1.6.2, `controllers/ray/utils/util.go`,
GetRayDashboardClientFunc). A dashboard could redirect it to that of another team, which admits KubeRay and asks nobody
for a password, and so have a program submitted there. This proxy passes on neither redirects nor long answers.
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

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of an answer. KubeRay asks for the state of a job, and for a list of jobs."""
SECONDS: Final = 2.0
"""For a whole answer, as long as KubeRay itself waits."""
_OF_CONNECTIONS: Final = ("connection", "keep-alive", "proxy-connection", "transfer-encoding")


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
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of the base class

    def _asked(self, body: bytes | None) -> tuple[int, str, bytes]:
        url = urlsplit(self.path)
        if url.scheme != "http" or not url.hostname:
            raise RefusedError("this proxy serves URLs of http alone")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_CONNECTIONS}
        connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=SECONDS)
        connection.connect()
        deadline = time.monotonic() + SECONDS
        ended = threading.Timer(SECONDS, _end, [connection.sock])
        ended.start()
        try:
            connection.request(self.command, f"{url.path}?{url.query}" if url.query else url.path, body, headers)
            found = connection.getresponse()
            if 300 <= found.status < 400:
                raise RefusedError(f"the dashboard redirects to {found.headers.get('Location')}")
            text = found.read(LARGEST + 1)
        finally:
            ended.cancel()
            connection.close()
        if len(text) > LARGEST:
            raise RefusedError(f"the answer is longer than {LARGEST} bytes")
        if time.monotonic() >= deadline:
            raise RefusedError(f"the answer takes more than {SECONDS:g} seconds")
        return found.status, found.headers.get("Content-Type") or "application/octet-stream", text

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
