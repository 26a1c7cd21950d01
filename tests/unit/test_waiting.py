"""Waiting for a VM's first boot: what is said on the way, what comes of it, and how it ends otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.openstack.access import first_boot
from components.openstack.access.first_boot import KUBECONFIG, MARKER, FirstBoot, FirstBootError, wait
from components.openstack.access.host import CommandError, Host, HostError, RefusedKeyError, WrongHostKeyError


class Answers:
    """A host that answers each question for its marker with the next of these; the last one again and again."""

    address, user, key_file = "192.0.2.7", "ubuntu", "/no/such/key"

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


def test_a_key_that_is_refused_is_not_waited_for_to_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A VM is billed while somebody waits for it; at its boot it may refuse a key for a moment."""
    clock = iter(range(0, 100_000, 60))
    monkeypatch.setattr(first_boot.time, "monotonic", lambda: float(next(clock)))
    refused = RefusedKeyError("ubuntu@192.0.2.7: Permission denied (publickey).")
    host = Answers(refused, HostError("boots"), *[refused] * 4, marker("ready", "cluster"))
    assert waited(host, seconds=7200)[1][-1] == "ready, step 'cluster'"
    host = Answers(refused)
    with pytest.raises(FirstBootError) as error:
        waited(host, seconds=7200)
    assert str(error.value) == (
        "192.0.2.7 does not let ubuntu in with the key /no/such/key (mlbatch:openstack.privateKeyFile, or "
        "$MLBATCH_SSH_KEY): it refuses the key (ubuntu@192.0.2.7: Permission denied (publickey).). Waiting "
        "does not help: there is no such file on this machine"
    )
    host.key_file = str(tmp_path / "key")
    (tmp_path / "key").touch()
    with pytest.raises(
        FirstBootError, match=r"the private half of mlbatch:openstack\.sshPublicKey, without a passphrase"
    ):
        waited(host, seconds=7200)


def test_a_user_who_can_run_nothing_is_told_and_not_taken_for_a_vm_that_boots() -> None:
    shell = CommandError("nobody cannot read /marker, which ended with 1: This account is currently not available.")
    _, said = waited(Answers(shell, marker("ready", "cluster")))
    assert said[0] == f"it is up ({shell})"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("exit 44", None),
        ("printf text", "text"),
        ("echo This account is currently not available.; exit 1", CommandError),
        ("echo 'cat: /marker: Permission denied' >&2; exit 1", CommandError),
        ("exit 142", CommandError),
        ("echo 'u@192.0.2.7: Permission denied (publickey).' >&2; exit 255", RefusedKeyError),
        ("echo 'Host key verification failed.' >&2; exit 255", WrongHostKeyError),
        ("echo 'Connection refused' >&2; exit 255", HostError),
    ],
)
def test_nothing_but_its_own_code_stands_for_a_file_that_is_not_there(
    program: str, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    host = Host(address="192.0.2.7", user="u", private_key_file="/key", public_key="ssh-ed25519 AAAA")
    if isinstance(expected, type):
        with pytest.raises(HostError) as error:
            host.read("/marker")
        assert type(error.value) is expected
    else:
        assert host.read("/marker") == expected


def test_the_key_is_that_of_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the tunnel has it: another engineer names another file."""
    (tmp_path / "ssh").write_text('#!/bin/sh\nwhile [ "$1" != -i ]; do shift; done; printf %s "$2"\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("MLBATCH_SSH_KEY", raising=False)
    host = Host(address="192.0.2.7", user="u", private_key_file="~/my keys/one", public_key="ssh-ed25519 AAAA")
    assert host.read("/marker") == "/home/me/my keys/one"
    monkeypatch.setenv("MLBATCH_SSH_KEY", "~/.ssh/other")
    assert host.read("/marker") == "/home/me/.ssh/other"


def test_another_host_is_not_waited_for_and_nobody_waits_for_ever() -> None:
    with pytest.raises(FirstBootError, match="another key"):
        waited(Answers(WrongHostKeyError("another key")))
    with pytest.raises(FirstBootError, match=r"not done within -1 s; at the end: it is up, and cloud-init at work\. "):
        waited(Answers(None), seconds=-1)
