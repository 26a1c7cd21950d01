"""Waiting for a VM's first boot: the progress messages, the result, and the errors."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.openstack.access import first_boot, host
from components.openstack.access.first_boot import BOOT, KUBECONFIG, MARKER, FirstBoot, FirstBootError, wait
from components.openstack.access.host import CommandError, Host, HostError, RefusedKeyError, WrongHostKeyError
from components.openstack.access.kubeconfig import through_tunnel
from components.openstack.access.remote_cluster import REPLACING, _Waiting


class Answers:
    """A host that answers each question for its marker with the next of these; the last one again and again."""

    address, user, key_file = "192.0.2.7", "ubuntu", "/no/such/key"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked = 0

    def read(self, path: str) -> str | None:
        if path == KUBECONFIG:
            return "kind: Config"
        if path == BOOT:
            return "boot 2\n"
        assert path == MARKER
        self.asked += 1
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


def test_a_connection_that_is_lost_at_the_very_end_is_waited_for_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an update that waited for half an hour would end with the program's own calls."""
    host = Answers(marker("ready", "registry"))
    lost, read = [HostError("Connection reset by peer"), CommandError("u cannot read it")], host.read

    def reads(path: str) -> str | None:
        if path == KUBECONFIG and lost:
            raise lost.pop(0)
        return read(path)

    monkeypatch.setattr(host, "read", reads)
    found, said = waited(host)
    assert found.kubeconfig == "kind: Config"
    assert said == [
        "it does not answer (Connection reset by peer)",
        "it is up (u cannot read it)",
        "ready, step 'registry'",
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


def test_what_a_vm_says_does_not_act_in_the_terminal() -> None:
    odd = "\x1b]0;title\x07\x1b[2J"
    with pytest.raises(FirstBootError) as error:
        waited(Answers(marker("failed", f"volume{odd}", message=odd, log=[odd, "two"])))
    assert "\x1b" not in str(error.value)
    assert "\n  ?]0;title??[2J\n  two\n" in str(error.value)
    _, said = waited(Answers(marker("running", f"docker{odd}"), marker("ready", "docker")))
    assert said[0] == "running, step 'docker?]0;title??[2J'"


def test_a_failure_of_the_boot_before_is_not_taken_for_one_of_this() -> None:
    """Who reads "reboot the VM: it goes on" does so, and updates at once, while the VM still has the old marker."""
    old, new = (marker("failed", "volume", boot=boot) for boot in ("boot 1", "boot 2"))
    _, said = waited(Answers(old, old, marker("ready", "cluster", boot="boot 2")))
    assert said == ["it has booted again, to go on with step 'volume'", "ready, step 'cluster'"]
    with pytest.raises(FirstBootError, match="failed in step 'volume'"):
        waited(Answers(old, new))


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
    assert host.asked == 6, "at every minute, until 300 s after the first refusal"
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


def test_it_is_looked_every_ten_seconds_and_once_more_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(first_boot.time, "monotonic", lambda: now)
    monkeypatch.setattr(first_boot.time, "sleep", sleep)
    host: Any = Answers(None)
    with pytest.raises(FirstBootError, match="was not done within 60 s"):
        wait(host, 60, lambda _: None)
    assert (now, host.asked) == (60, 7)


def test_a_user_who_can_run_nothing_is_told_and_not_taken_for_a_vm_that_boots() -> None:
    shell = CommandError("nobody cannot read /marker, which ended with 1: This account is currently not available.")
    _, said = waited(Answers(shell, marker("ready", "cluster")))
    assert said[0] == f"it is up ({shell})"


VM = Host(address="192.0.2.7", user="u", private_key_file="/key", public_key="ssh-ed25519 AAAA", vm="vm-1", port=2022)
NO_VM = (
    "what answers at 192.0.2.7 port 2022 has not the VM's host key, so it is not the VM. Another machine may have its "
    "address, or somebody is in between: look at the VM's console"
)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("exit 44", None),
        ("printf text", "text"),
        (
            "echo This account is currently not available.; exit 1",
            CommandError("u cannot read /marker, which ended with 1: This account is currently not available."),
        ),
        (
            "echo on stdout; echo Welcome >&2; echo 'cat: /marker: Permission denied' >&2; exit 1",
            CommandError("u cannot read /marker, which ended with 1: cat: /marker: Permission denied"),
        ),
        ("exit 142", CommandError("u cannot read /marker, which ended with 142: ")),
        (
            "echo 'u@192.0.2.7: Permission denied (publickey).' >&2; exit 255",
            RefusedKeyError("u@192.0.2.7: Permission denied (publickey)."),
        ),
        ("echo 'Host key verification failed.' >&2; exit 255", WrongHostKeyError(NO_VM)),
        ("echo 'WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!' >&2; exit 255", WrongHostKeyError(NO_VM)),
        ("echo 'No ED25519 host key is known for vm' >&2; exit 255", WrongHostKeyError(NO_VM)),
        ("echo 'Connection refused' >&2; exit 255", HostError("Connection refused")),
        ("exit 255", HostError("ssh ended with 255")),
    ],
)
def test_nothing_but_its_own_code_stands_for_a_file_that_is_not_there(
    program: str, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    if isinstance(expected, HostError):
        with pytest.raises(HostError) as error:
            VM.read("/marker")
        assert (type(error.value), str(error.value)) == (type(expected), str(expected))
    else:
        assert VM.read("/marker") == expected


def test_without_ssh_or_an_answer_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(*_: object, timeout: float, **__: object) -> None:
        raise subprocess.TimeoutExpired("ssh", timeout)

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"^there is no `ssh` on PATH: install OpenSSH's client$"):
        VM.read("/marker")
    monkeypatch.setattr(host.subprocess, "run", hangs)
    with pytest.raises(HostError, match=r"^no answer within 60 s$"):
        VM.read("/marker")


def test_ssh_asks_nobody_and_believes_the_vms_own_key_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on the user's own configuration (ssh_config(5))."""
    (tmp_path / "ssh").write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@"\n'
        'for word; do case "$word" in UserKnownHostsFile=*) cat "${word#*=}"; esac; done\ncat\n'
    )
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("MLBATCH_SSH_KEY", raising=False)
    *words, known = (VM.read("/a marker") or "").splitlines()
    options = sorted(word for word in words if "=" in word)
    file = options.pop().removeprefix("UserKnownHostsFile=")
    assert options == [
        "BatchMode=yes",
        "ConnectTimeout=20",
        "ControlMaster=no",
        "ControlPath=none",
        "ForwardAgent=no",
        "GlobalKnownHostsFile=/dev/null",
        "HostKeyAlias=mlbatch-vm",
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=yes",
    ]
    assert words[0:20:2] == ["-o"] * 10
    read = "test -e '/a marker' || exit 44; cat '/a marker'"
    assert words[20:] == ["-i", "/key", "-p", "2022", "u@192.0.2.7", read]
    assert known == "mlbatch-vm ssh-ed25519 AAAA"
    assert not Path(file).exists()


def kubeconfig(user: str = "{token: made-up}", context: str = "kind") -> str:
    return (
        f"current-context: {context}\nclusters: [{{name: other, cluster: {{}}}}, {{name: kind, cluster: {{}}}}]\n"
        f"contexts: [{{name: kind, context: {{cluster: kind, user: kind}}}}]\nusers: [{{name: kind, user: {user}}}]\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (kubeconfig(context="gone"), "the VM's kubeconfig has no 'gone' among its contexts"),
        ("current-context: kind\ncontexts:\n", "the VM's kubeconfig has no 'kind' among its contexts"),
        (
            kubeconfig("{client-certificate-data: QQ==}"),
            "the user of the VM's kubeconfig has neither a token nor a certificate with its key",
        ),
        (
            kubeconfig("{client-key-data: QQ==}"),
            "the user of the VM's kubeconfig has neither a token nor a certificate with its key",
        ),
    ],
)
def test_a_kubeconfig_that_lets_nobody_in_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        through_tunnel(text, VM, 6443)


PROPERTIES = {
    "address": "192.0.2.7",
    "user": "u",
    "private_key_file": "/key",
    "host_key_public": "ssh-ed25519 AAAA",
    "vm": "machine-id",
    "timeout_seconds": 3600.0,
    "api_port": 6443.0,
    "port": 22.0,
    "plugin": "0123",
}
"""As the engine hands them over."""


class TestRemoteCluster:
    @pytest.fixture
    def marked(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Files of the VM: a marker, and a kubeconfig."""
        files: dict[str, Any] = {
            KUBECONFIG: kubeconfig(),
            MARKER: json.dumps(marker("ready", "cluster", versions={"docker": "28.5.2"}, checks={"nvcc": "passed"})),
        }
        monkeypatch.setattr(Host, "read", lambda self, path: files[path])
        return files

    def test_it_is_there_when_the_first_boot_is_done(
        self, marked: dict[str, Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        made = _Waiting().create(PROPERTIES)
        assert made.id == "machine-id"
        assert made.outs is not None
        assert made.outs["kubeconfig"] == through_tunnel(kubeconfig(), replace(VM, vm="machine-id", port=22), 6443)
        assert (made.outs["versions"], made.outs["checks"]) == ({"docker": "28.5.2"}, {"nvcc": "passed"})
        assert {name: made.outs[name] for name in PROPERTIES} == PROPERTIES
        assert capsys.readouterr().err == "first boot: ready, step 'cluster'\n"

    def test_a_vm_without_a_cluster_is_refused(self, marked: dict[str, Any]) -> None:
        marked[KUBECONFIG] = None
        with pytest.raises(
            ValueError, match=r"^192\.0\.2\.7 has no kubeconfig: its first boot was told of no cluster$"
        ):
            _Waiting().create(PROPERTIES)

    def test_a_failed_step_is_told_without_the_programs_own_calls(
        self, marked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.tracebacklimit", 1000, raising=False)
        marked[MARKER] = json.dumps(marker("failed", "volume", message="it holds data"))
        with pytest.raises(FirstBootError, match="it holds data"):
            _Waiting().create(PROPERTIES)
        assert sys.tracebacklimit == 0

    @pytest.mark.parametrize("name", PROPERTIES)
    def test_another_vm_or_address_is_another_cluster_and_all_else_an_update(self, name: str) -> None:
        found = _Waiting().diff("machine-id", PROPERTIES, {**PROPERTIES, name: "another"})
        replaces = name in ("address", "user", "host_key_public", "vm", "api_port", "port")
        assert (found.changes, found.replaces) == (True, [name] if replaces else [])
        assert (name in REPLACING) is replaces

    def test_nothing_new_changes_nothing(self) -> None:
        found = _Waiting().diff("machine-id", {**PROPERTIES, "kubeconfig": "text"}, PROPERTIES)
        assert (found.changes, found.replaces) == (False, [])

    def test_another_key_file_keeps_the_credential(self, marked: dict[str, Any]) -> None:
        before = dict(_Waiting().create(PROPERTIES).outs or {})
        other = {**PROPERTIES, "private_key_file": "/other", "timeout_seconds": 60.0}
        after = dict(_Waiting().update("machine-id", before, other).outs or {})
        assert after["kubeconfig"] == before["kubeconfig"].replace("value: /key", "value: /other")
        assert after["kubeconfig"] != before["kubeconfig"]
        assert {**after, "kubeconfig": ""} == {**before, **other, "kubeconfig": ""}

    def test_a_kubeconfig_of_an_older_version_leads_to_the_tunnel_that_todays_opens(
        self, marked: dict[str, Any]
    ) -> None:
        before = dict(_Waiting().create(PROPERTIES).outs or {})
        port = yaml.safe_load(before["kubeconfig"])["clusters"][0]["cluster"]["server"].rpartition(":")[2]
        older = {**before, "kubeconfig": before["kubeconfig"].replace(port, "20000")}
        after = _Waiting().update("machine-id", older, {**PROPERTIES, "plugin": "newer"}).outs or {}
        assert after["kubeconfig"] == before["kubeconfig"]


def test_the_key_is_that_of_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like the tunnel: another engineer uses another file."""
    (tmp_path / "ssh").write_text('#!/bin/sh\nwhile [ "$1" != -i ]; do shift; done; printf %s "$2"\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("MLBATCH_SSH_KEY", raising=False)
    host = Host(
        address="192.0.2.7", user="u", private_key_file="~/my keys/one", public_key="ssh-ed25519 AAAA", vm="vm-1"
    )
    assert host.read("/marker") == "/home/me/my keys/one"
    monkeypatch.setenv("MLBATCH_SSH_KEY", "~/.ssh/other")
    assert host.read("/marker") == "/home/me/.ssh/other"


def test_another_host_is_not_waited_for_and_nobody_waits_for_ever() -> None:
    with pytest.raises(FirstBootError, match="another key"):
        waited(Answers(WrongHostKeyError("another key")))
    with pytest.raises(FirstBootError, match=r"not done within -1 s; at the end: it is up, and cloud-init at work\. "):
        waited(Answers(None), seconds=-1)
