"""HTTP servers on loopback for tests, and kubeconfigs that name them."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml


class Handler(BaseHTTPRequestHandler):
    """Handles requests of all methods alike, without a log."""

    def respond(self) -> None:
        raise NotImplementedError

    do_GET = do_POST = do_DELETE = do_CONNECT = lambda self: self.respond()  # noqa: N815 - names of the base class

    def answer(self, status: int, body: object = None) -> None:
        """Send a status, and a body as JSON."""
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print no log."""


POLL = (0.02,)
"""Argument of `serve_forever`: seconds until a server notices `shutdown`. The default costs half a second a test."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Yield the port of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=POLL, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def silent() -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers, like a tunnel without a server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def kubeconfig_of(server: str, folder: Path, name: str = "kubernetes", token: str = "made-up") -> Path:
    """Write a kubeconfig of a cluster at an address."""
    file = folder / f"kubeconfig-{name}-{server.rpartition(':')[2]}"
    file.write_text(
        yaml.safe_dump(
            {
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": name, "user": "u"}}],
                "clusters": [{"name": name, "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": token}}],
            }
        )
    )
    return file
