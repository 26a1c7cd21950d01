"""Schedule and results of probes."""

import socket
from typing import Any

import pytest

from emulator.cluster.errors import UnsupportedError
from emulator.cluster.probes import Probe


class Endpoint:
    """Accepts or refuses connections, and counts them."""

    def __init__(self) -> None:
        self.up = True
        self.asked = 0

    def connect(self, port: int) -> socket.socket:
        self.asked += 1
        if not self.up:
            raise ConnectionRefusedError
        ours, theirs = socket.socketpair()
        theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        self.kept = theirs
        return ours


def probe(kind: str, **spec: Any) -> Probe:
    found = Probe.of({"name": "c", kind: {"httpGet": {"path": "/readyz", "port": 8081}, **spec}}, kind, 100.0)
    assert found is not None
    return found


def test_readiness_is_checked_at_once_despite_the_delay() -> None:
    endpoint = Endpoint()
    assert probe("readinessProbe", initialDelaySeconds=30).run(endpoint.connect, 100.0)


def test_readiness_is_asked_often_until_it_succeeds_and_then_as_specified() -> None:
    endpoint, readiness = Endpoint(), probe("readinessProbe", periodSeconds=10)
    endpoint.up = False
    assert not readiness.run(endpoint.connect, 100.0)
    assert readiness.due == 100.5
    endpoint.up = True
    assert readiness.run(endpoint.connect, 100.5)
    assert readiness.due == 110.5


def test_readiness_is_lost_after_the_threshold() -> None:
    endpoint, readiness = Endpoint(), probe("readinessProbe", failureThreshold=2, periodSeconds=1)
    readiness.run(endpoint.connect, 100.0)
    endpoint.up = False
    assert readiness.run(endpoint.connect, 101.0)
    assert not readiness.run(endpoint.connect, 102.0)


def test_liveness_waits_for_its_delay_and_holds_until_then() -> None:
    endpoint, liveness = Endpoint(), probe("livenessProbe", initialDelaySeconds=15, failureThreshold=1)
    endpoint.up = False
    assert liveness.run(endpoint.connect, 114.0)
    assert endpoint.asked == 0
    assert not liveness.run(endpoint.connect, 115.0)


def test_a_named_port_is_looked_up() -> None:
    container = {
        "name": "c",
        "ports": [{"name": "health", "containerPort": 8081}],
        "readinessProbe": {"tcpSocket": {"port": "health"}},
    }
    found = Probe.of(container, "readinessProbe", 0.0)
    assert found is not None
    assert found.ports == {"health": 8081}


def test_exec_probes_are_refused() -> None:
    container = {"name": "c", "livenessProbe": {"exec": {"command": ["true"]}}}
    with pytest.raises(UnsupportedError, match="container c"):
        Probe.of(container, "livenessProbe", 0.0)
