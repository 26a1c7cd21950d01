"""A pod's phase, conditions and container states."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulator.cluster.pod_status import ContainerState, StatusWriter, Termination, phase, will_restart

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD: dict[str, Any] = {"spec": {}}
FAILED = Termination(1, NOW, NOW)
DONE = Termination(0, NOW, NOW)
KILLED = Termination(-9, NOW, NOW)


def container(**changes: Any) -> ContainerState:
    return ContainerState(**{"name": "c", "image": "i", **changes})


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {item["type"]: (item["status"], item["lastTransitionTime"]) for item in status["conditions"]}


def writer() -> StatusWriter:
    return StatusWriter("127.0.0.1", "10.244.0.1", NOW)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], "Pending"),
        ([container(started=NOW)], "Running"),
        ([container(started=NOW), container()], "Pending"),
        ([container(previous=FAILED)], "Running"),
        ([container(ended=DONE), container(started=NOW)], "Running"),
        ([container(ended=DONE)], "Succeeded"),
        ([container(ended=DONE), container(ended=FAILED)], "Failed"),
    ],
)
def test_phase(containers: list[ContainerState], expected: str) -> None:
    assert phase(containers) == expected


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [("Always", 0, True), ("OnFailure", 0, False), ("OnFailure", -9, True), ("Never", 1, False)],
)
def test_restart_policy(policy: str, code: int, expected: bool) -> None:
    assert will_restart(policy, code) is expected


def test_a_signal_is_reported_as_a_shell_does() -> None:
    described = KILLED.describe()
    assert (described["exitCode"], described["signal"], described["reason"]) == (137, 9, "Error")


def test_a_crashing_container_shows_why_it_waits_and_how_it_ended() -> None:
    described = container(waiting=("CrashLoopBackOff", "back-off"), previous=FAILED, restarts=2).describe()
    assert described["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    assert described["lastState"]["terminated"]["exitCode"] == 1
    assert described["restartCount"] == 2
    assert not described["ready"]


def test_ready_follows_the_containers_and_keeps_its_transition_time() -> None:
    status = writer()
    running = container(started=NOW, startup_passed=True)
    first = conditions(status.compute(POD, [running], sandboxed=True, now=NOW))
    assert first["Ready"][0] == "False"
    running.ready = True
    second = conditions(status.compute(POD, [running], sandboxed=True, now=NOW + timedelta(seconds=5)))
    assert second["Ready"] == ("True", "2026-01-01T00:00:05Z")
    third = conditions(status.compute(POD, [running], sandboxed=True, now=NOW + timedelta(seconds=9)))
    assert third == second


def test_a_pod_waits_for_its_readiness_gates() -> None:
    ready = container(started=NOW, ready=True, startup_passed=True)
    pod: dict[str, Any] = {"spec": {"readinessGates": [{"conditionType": "example.com/open"}]}, "status": {}}
    assert conditions(writer().compute(pod, [ready], sandboxed=True, now=NOW))["Ready"][0] == "False"
    pod["status"]["conditions"] = [{"type": "example.com/open", "status": "True"}]
    assert conditions(writer().compute(pod, [ready], sandboxed=True, now=NOW))["Ready"][0] == "True"


def test_a_pod_without_a_sandbox_has_no_address() -> None:
    assert "podIP" not in writer().compute(POD, [container()], sandboxed=False, now=NOW)
    assert writer().compute(POD, [container(started=NOW)], sandboxed=True, now=NOW)["podIP"] == "10.244.0.1"
