"""The proxy between KubeRay and the dashboards of Ray clusters, against a team's malicious dashboard."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest

from components.queueing import dashboard_proxy
from tests.unit.servers import Handler, serving

ANSWER = b'{"job": 1}'


class Dashboard(Handler):
    """Answers by path and records the requests."""

    asked: ClassVar[list[tuple[str, str, bytes, str | None]]] = []
    victim: ClassVar[int] = 0

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, body, self.headers.get("x-ray-authorization")))
        if self.path.startswith("/redirect/"):
            self.send_response(int(self.path.rpartition("/")[2]))
            self.send_header("Location", f"http://127.0.0.1:{self.victim}/api/jobs/")
            self.end_headers()
            return
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Type", "application/json")
        if self.path != "/endless":
            length = {"/long": dashboard_proxy.LARGEST + 1, "/slow": 10**6, "/cut": 100}.get(self.path, len(ANSWER))
            self.send_header("Content-Length", str(length))
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(10**6 if self.path == "/slow" else 1):
                self.wfile.write(b" " if self.path == "/slow" else ANSWER)
                time.sleep(0.01 if self.path == "/slow" else 0)


@pytest.fixture(scope="module")
def victim() -> Iterator[int]:
    """The dashboard of another team."""
    with serving(Dashboard) as port:
        yield port


@pytest.fixture
def dashboard(victim: int) -> Iterator[int]:
    Dashboard.victim, Dashboard.asked[:] = victim, []
    with serving(Dashboard) as port:
        yield port


@pytest.fixture
def proxy() -> Iterator[int]:
    with serving(dashboard_proxy.DashboardProxy) as port:
        yield port


def asked(proxy: int, url: str, command: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy, timeout=60)
    connection.request(command, url, body, {"x-ray-authorization": "token"})
    found = connection.getresponse()
    return found.status, found.read()


@pytest.mark.parametrize(("command", "body"), [("GET", b""), ("POST", b'{"entrypoint": "train"}'), ("DELETE", b"")])
def test_a_request_and_its_answer_pass(proxy: int, dashboard: int, command: str, body: bytes) -> None:
    assert asked(proxy, f"http://127.0.0.1:{dashboard}/", command, body) == (200, ANSWER)
    assert Dashboard.asked == [(command, "/", body, "token")]


def test_an_error_of_the_dashboard_passes(proxy: int, dashboard: int) -> None:
    assert asked(proxy, f"http://127.0.0.1:{dashboard}/missing")[0] == 404


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_teams_dashboard_does_not(proxy: int, dashboard: int, status: int) -> None:
    path = f"/redirect/{status}"
    found, said = asked(proxy, f"http://127.0.0.1:{dashboard}{path}", "POST", b"{}")
    assert (found, b"not with an answer" in said) == (502, True)
    assert [each[1] for each in Dashboard.asked] == [path], "nobody else was asked"


@pytest.mark.parametrize("path", ["/long", "/slow", "/cut", "/endless"])
def test_an_answer_has_an_end(proxy: int, dashboard: int, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if path == "/slow":
        monkeypatch.setattr(dashboard_proxy, "SECONDS", 0.2)
    assert asked(proxy, f"http://127.0.0.1:{dashboard}{path}")[0] == 502


SMUGGLED = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"


class Smuggler(Dashboard):
    """Answers with a status that has no body, and a body that is another answer."""

    status: ClassVar[bytes] = b""

    def respond(self) -> None:
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
        self.wfile.write(b"HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n\r\n%s" % (self.status, chunk))
        self.close_connection = True


@pytest.mark.parametrize("status", ["103 Early Hints", "204 No Content", "205 Reset Content", "304 Not Modified"])
def test_an_answer_brings_no_second_one(proxy: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client takes what follows such a status for the next answer, which may be to a question about another team."""
    monkeypatch.setattr(Smuggler, "status", status.encode())
    with serving(Smuggler) as port, socket.create_connection(("127.0.0.1", proxy)) as connection:
        connection.sendall(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.count(b"HTTP/1.1") == 1
    assert received.split()[1] in (b"200", b"502")
    assert b"Connection: close" in received


@pytest.mark.parametrize("url", ["/api/jobs/", "https://127.0.0.1/", "http://127.0.0.1:1/"])
def test_what_cannot_be_asked_is_an_error(proxy: int, url: str) -> None:
    assert asked(proxy, url)[0] == 502
