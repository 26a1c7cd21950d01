"""Planned faults apply to matching calls, as often as planned."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from emulator.openstack.faults import FAIL, TIMEOUT, Fault, Faults
from emulator.openstack.inside.failing import Failing

CALL = "POST /v2.1/servers"


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    return Faults(tmp_path / "faults.json")


class Service:
    """A WSGI application that counts its calls."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.done += 1
        start_response("202 Accepted", [])
        yield b"made"


def call(application: Any, method: str = "POST", path: str = "/v2.1/servers") -> tuple[str, bytes]:
    said: list[str] = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path}
    body = b"".join(application(environ, lambda status, headers, exc_info=None: said.append(status)))
    return said[0], body


def test_without_a_planned_fault_calls_succeed(faults: Faults) -> None:
    assert faults.planned() == []
    assert faults.take("nova", CALL) is None


def test_a_fault_is_spent(faults: Faults) -> None:
    faults.plan(Fault("nova", "POST */servers", FAIL, 2))
    assert [faults.take("nova", CALL) for _ in range(3)] == [FAIL, FAIL, None]
    assert faults.planned() == []


def test_only_calls_that_match_take_it(faults: Faults) -> None:
    fault = Fault("nova", "POST */servers", FAIL, 1)
    faults.plan(fault)
    assert faults.take("neutron", CALL) is None
    assert faults.take("nova", "GET /v2.1/servers") is None
    assert faults.take("nova", "POST /v2.1/servers/1/action") is None
    assert faults.planned() == [fault]


def test_calls_at_once_take_it_as_often_as_planned(faults: Faults) -> None:
    faults.plan(Fault("nova", "*", FAIL, 5))
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: faults.take("nova", CALL), range(40)))
    assert taken.count(FAIL) == 5


def test_a_cleared_fault_does_not_happen(faults: Faults) -> None:
    faults.plan(Fault("nova", "*", FAIL, 5))
    faults.clear()
    assert faults.take("nova", CALL) is None


def test_a_call_that_fails_is_not_done(faults: Faults) -> None:
    service = Service()
    faults.plan(Fault("nova", "POST *", FAIL, 1))
    application = Failing(service, "nova", faults)
    status, body = call(application)
    assert (status, b"503" in body, service.done) == ("503 Service Unavailable", True, 0)
    assert call(application) == ("202 Accepted", b"made")


def test_a_call_that_times_out_is_done(faults: Faults) -> None:
    service = Service()
    faults.plan(Fault("nova", "POST *", TIMEOUT, 1))
    status, body = call(Failing(service, "nova", faults))
    assert (status, b"made" in body, service.done) == ("504 Gateway Timeout", False, 1)
