"""The pod behind a Service's address, and the responses of the CONNECT proxy."""

import socket
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from emulator.cluster.egress import Proxy
from emulator.cluster.errors import MissingError
from emulator.cluster.relay import Relay
from emulator.cluster.routing import NoRouteError, Route, resolve
from emulator.cluster.store import Store

SERVICE = {
    "metadata": {"namespace": "kueue-system", "name": "webhook"},
    "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 443, "targetPort": 9443}, {"port": 80, "name": "plain"}]},
}


def endpoints(*ready: bool | None, name: str = "webhook", port_name: str = "") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "kueue-system", "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": port_name, "port": 9443}],
        "endpoints": [
            {"addresses": [f"10.244.0.{number}"], "conditions": {"ready": state}} for number, state in enumerate(ready)
        ],
    }


@pytest.mark.parametrize("host", ["10.96.7.7", "webhook.kueue-system.svc", "webhook.kueue-system.svc.cluster.local"])
def test_the_first_ready_endpoint_is_taken(host: str) -> None:
    assert resolve(host, 443, [SERVICE], [endpoints(False, True)]) == Route("10.244.0.1", 9443)


def test_an_absent_condition_counts_as_ready() -> None:
    assert resolve("10.96.7.7", 443, [SERVICE], [endpoints(None)]) == Route("10.244.0.0", 9443)


@pytest.mark.parametrize(
    ("host", "port", "slices", "message"),
    [
        ("10.96.0.99", 443, [endpoints(True)], "10.96.0.99 is not the address of a Service"),
        ("10.96.7.7", 8443, [endpoints(True)], "Service kueue-system/webhook has no port 8443"),
        ("10.96.7.7", 443, [endpoints(False)], "Service kueue-system/webhook has no ready endpoint for port 443"),
        ("10.96.7.7", 443, [endpoints(True, name="other")], "no ready endpoint"),
        ("10.96.7.7", 80, [endpoints(True)], "no ready endpoint for port 80"),
    ],
)
def test_no_route_says_why(host: str, port: int, slices: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(NoRouteError, match=message):
        resolve(host, port, [SERVICE], slices)


class Fixed:
    """A store that never changes."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self._objects = list(objects)

    def all(self) -> list[dict[str, Any]]:
        return self._objects


def ask(tmp_path: Path, relay: Relay, request: bytes, *, refuse: bool = False) -> bytes:
    """Send a request to a proxy whose only pod answers each connection with its port number."""

    def connect(address: str, port: int) -> socket.socket:
        if refuse:
            raise MissingError("Connection refused")
        ours, theirs = socket.socketpair()
        theirs.sendall(f"{address}:{port}".encode())
        theirs.close()
        return ours

    path = tmp_path / "egress.sock"
    services, slices = cast(Store, Fixed(SERVICE)), cast(Store, Fixed(endpoints(True)))
    nodes = {"node:10250": lambda client: client.close()}
    Proxy(path, services, slices, connect, relay.join, nodes).start()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(4096), b""))


def test_the_proxy_connects_with_the_pod(tmp_path: Path, relay: Relay) -> None:
    answer = ask(tmp_path, relay, b"CONNECT 10.96.7.7:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert answer == b"HTTP/1.1 200 OK\r\n\r\n10.244.0.0:9443"


def test_a_node_answers_for_itself(tmp_path: Path, relay: Relay) -> None:
    assert ask(tmp_path, relay, b"CONNECT node:10250 HTTP/1.1\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("request_line", "reason"),
    [
        (b"CONNECT 192.0.2.1:443 HTTP/1.1", b"192.0.2.1 is not the address of a Service"),
        (b"CONNECT nonsense HTTP/1.1", b"is not host:port"),
        (b"GET / HTTP/1.1", b"GET is not CONNECT"),
    ],
)
def test_the_proxy_refuses_with_a_reason(tmp_path: Path, relay: Relay, request_line: bytes, reason: bytes) -> None:
    answer = ask(tmp_path, relay, request_line + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert reason in answer


def test_a_pod_that_refuses_is_named(tmp_path: Path, relay: Relay) -> None:
    answer = ask(tmp_path, relay, b"CONNECT 10.96.7.7:443 HTTP/1.1\r\n\r\n", refuse=True)
    assert b"pod 10.244.0.0 port 9443: Connection refused" in answer


def test_a_connection_continues_after_the_proxys_handshake(tmp_path: Path, relay: Relay) -> None:
    """The standard library's server closes a connection after its response, unless another owner took it over."""
    path = tmp_path / "egress.sock"
    services, slices = cast(Store, Fixed(SERVICE)), cast(Store, Fixed(endpoints(True)))
    ours, pod = socket.socketpair()
    others = set(threading.enumerate())  # servers of other tests may still respond
    Proxy(path, services, slices, lambda address, port: ours, relay.join, {}).start()
    with pod, socket.socket(socket.AF_UNIX) as client:
        for end in (pod, client):
            end.settimeout(5)
        client.connect(str(path))
        client.sendall(b"CONNECT 10.96.7.7:443 HTTP/1.1\r\n\r\n")
        assert client.recv(4096) == b"HTTP/1.1 200 OK\r\n\r\n"
        deadline = time.monotonic() + 30
        while answering := [
            each
            for each in threading.enumerate()
            if each not in others and each.name.endswith("(process_request_thread)")
        ]:
            assert time.monotonic() < deadline, f"the proxy goes on: {answering}"
            time.sleep(0.01)
        client.sendall(b"question")
        assert pod.recv(4096) == b"question"
        pod.sendall(b"answer")
        assert client.recv(4096) == b"answer"
