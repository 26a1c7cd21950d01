"""Waiting for a VM's first boot: what is said on the way, what comes of it, and how it ends otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.openstack.access.first_boot import KUBECONFIG, MARKER, FirstBoot, FirstBootError, wait
from components.openstack.access.host import HostError, WrongHostKeyError


class Answers:
    """A host that answers each question for its marker with the next of these; the last one again and again."""

    address = "192.0.2.7"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def read(self, path: str) -> str | None:
        if path == KUBECONFIG:
            return "kind: Config"
        assert path == MARKER
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else json.dumps(answer)


def marker(state: str, step: str, **more: Any) -> dict[str, Any]:
    return {"state": state, "step": step, "message": "", "log": [], "versions": {}, "checks": {}, **more}


def waited(host: Any, seconds: float = 60) -> tuple[FirstBoot, list[str]]:
    said: list[str] = []
    return wait(host, seconds, said.append, pause=0), said


def test_what_changes_is_said_once_and_what_was_recorded_is_returned() -> None:
    running = marker("running", "driver")
    ready = marker("ready", "cluster", versions={"docker": "28.5.2"}, checks={"hello-world": "passed"})
    found, said = waited(Answers(HostError("refused"), None, None, running, running, ready))
    assert found == FirstBoot(
        versions={"docker": "28.5.2"}, checks={"hello-world": "passed"}, kubeconfig="kind: Config"
    )
    assert said == [
        "it does not answer (refused)",
        "it is up, and cloud-init at work",
        "running, step 'driver'",
        "ready, step 'cluster'",
    ]


def test_a_failure_is_told_with_its_step_and_the_end_of_its_log() -> None:
    failed = marker("failed", "volume", message="it holds data", log=["one", "two"])
    with pytest.raises(FirstBootError) as error:
        waited(Answers(failed))
    assert str(error.value) == (
        "the first boot of 192.0.2.7 failed in step 'volume': it holds data. The end of its log, "
        "/var/log/mlbatch-first-boot.log:\n  one\n  two\nOnce the cause is gone, reboot the VM: it goes on "
        "with that step"
    )


def test_another_host_is_not_waited_for_and_nobody_waits_for_ever() -> None:
    with pytest.raises(FirstBootError, match="another key"):
        waited(Answers(WrongHostKeyError("another key")))
    with pytest.raises(FirstBootError, match=r"not done within -1 s; at the end: it is up, and cloud-init at work\. "):
        waited(Answers(None), seconds=-1)
