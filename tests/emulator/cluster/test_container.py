"""A container's runs and pauses, and its state after a restart of the kubelet."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulator.cluster.container import Container
from emulator.cluster.pod_status import Termination

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = {"name": "c", "image": "i"}


def container(policy: str = "Always", state: dict[str, Any] | None = None, **status: Any) -> Container:
    statuses = [] if state is None else [{"name": "c", "state": state, **status}]
    return Container.of(SPEC, {"spec": {"restartPolicy": policy}, "status": {"containerStatuses": statuses}})


def ended(code: int = 1, seconds: float = 1.0) -> Termination:
    return Termination(code, NOW, NOW + timedelta(seconds=seconds))


def test_a_container_of_a_stopped_kubelet_ended_and_starts_again_at_once() -> None:
    found = container(state={"running": {"startedAt": "2026-01-01T00:00:00Z"}}, restartCount=2)
    assert not found.lives
    assert found.state.ended is None
    assert found.state.previous is not None
    assert (found.state.previous.exit_code, found.state.previous.reason) == (137, "ContainerStatusUnknown")
    assert (found.start_at, found.state.waiting[0], found.state.restarts) == (0.0, "ContainerCreating", 2)


def test_a_container_without_restarts_stays_ended_after_the_kubelet() -> None:
    found = container("Never", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    assert found.state.ended is not None
    assert found.state.ended.exit_code == 137


def test_an_ended_container_stays_ended() -> None:
    terminated = {"exitCode": 143, "signal": 15, "startedAt": "2026-01-01T00:00:00Z", "reason": "Error"}
    found = container("Never", {"terminated": terminated})
    assert found.state.ended is not None
    assert (found.state.ended.code, found.state.ended.started, found.state.ended.reason) == (-15, NOW, "Error")


def test_pauses_grow_up_to_a_limit_and_are_forgotten_after_a_long_run() -> None:
    found = container()
    pauses = []
    for _ in range(7):
        found.end(ended())
        pauses.append(round(found.start_at - time.monotonic()))
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert found.state.waiting == ("CrashLoopBackOff", "back-off 30s restarting failed container c")
    found.end(ended(seconds=61))
    assert round(found.start_at - time.monotonic()) == 1


@pytest.mark.parametrize(("policy", "code", "over"), [("Always", 0, False), ("OnFailure", 0, True), ("Never", 1, True)])
def test_the_policy_says_whether_it_starts_again(policy: str, code: int, over: bool) -> None:
    found = container(policy)
    found.end(ended(code))
    assert (found.state.ended is not None) is over


def test_a_container_without_probes_is_ready_when_it_runs_and_one_with_a_probe_is_not_yet() -> None:
    found = container()
    found.begin(NOW)
    assert (found.lives, found.state.ready, found.state.startup_passed) == (True, True, True)
    probed = container()
    probed.spec = {**SPEC, "readinessProbe": {"tcpSocket": {"port": 1}}}
    probed.begin(NOW)
    assert (probed.state.ready, probed.state.startup_passed) == (False, True)


def test_a_startup_probe_delays_the_others_and_finally_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(port: int) -> Any:
        raise ConnectionRefusedError

    found = container()
    startup = {"tcpSocket": {"port": 1}, "failureThreshold": 2, "periodSeconds": 5}
    found.spec = {**SPEC, "startupProbe": startup, "livenessProbe": {"tcpSocket": {"port": 1}}}
    found.begin(NOW)
    assert found.probe(refuse)[1] == ""
    assert not found.state.startup_passed
    late = time.monotonic() + 11
    monkeypatch.setattr(time, "monotonic", lambda: late)
    assert found.probe(refuse)[1] == "startupProbe"
