"""The private half of the key pair is checked before a VM is created that no user could sign in to."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stacks.targets.cpouta import key_file
from stacks.targets.cpouta.key_file import Obstacle, obstacle


def pair(file: Path, passphrase: str = "") -> str:
    """Make a pair of keys; return the public one."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", file], check=True)
    return file.with_name(f"{file.name}.pub").read_text()


def told(file: Path, public: str, **environment: str) -> Obstacle:
    found = obstacle(str(file), public, environment)
    assert found is not None
    return found


@pytest.fixture
def agent() -> Iterator[dict[str, str]]:
    """Yield the variables of an ssh-agent that has no key yet."""
    text = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    variables = dict(line.split(";")[0].split("=") for line in text.splitlines() if "=" in line)
    yield variables
    subprocess.run(["ssh-agent", "-k"], env=variables, check=True, capture_output=True)


def test_the_pair_is_taken_whatever_is_remarked_behind_the_key(tmp_path: Path) -> None:
    public = " ".join(pair(tmp_path / "key").split()[:2])
    assert obstacle(str(tmp_path / "key"), f"{public} me@home", {}) is None


def test_another_pairs_private_half_is_told(tmp_path: Path) -> None:
    pair(tmp_path / "key")
    other = pair(tmp_path / "other")
    found = told(tmp_path / "key", other)
    assert "is not the private key of sshPublicKey" in found.message
    assert f"`ssh-keygen -y -f {tmp_path / 'key'}`" in found.hint


def test_a_file_that_is_not_there_or_a_folder_is_told(tmp_path: Path) -> None:
    assert told(tmp_path / "none", "").message == f"there is no file {tmp_path / 'none'} on this machine"
    assert "ssh-keygen -t ed25519 -N ''" in told(tmp_path / "none", "").hint
    assert told(tmp_path, "").message == f"{tmp_path} is a folder"


def test_what_ssh_would_not_read_is_told(tmp_path: Path) -> None:
    public = pair(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    assert told(tmp_path / "key", public) == Obstacle(
        "other users can read the file, and ssh rejects such a key", f"run `chmod 600 {tmp_path / 'key'}`"
    )
    (tmp_path / "text").write_text("hunter2\n")
    (tmp_path / "text").chmod(0o600)
    found = told(tmp_path / "text", public)
    assert "as a private key" in found.message
    assert "hunter2" not in f"{found}"


def test_programs_that_do_not_answer_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = pair(tmp_path / "key", "hunter2")
    given: list[float] = []

    def hangs(command: tuple[str, ...], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
        given.append(timeout)
        if command[0] == "ssh-add":
            raise subprocess.TimeoutExpired(command, timeout)
        return run(command, timeout=timeout, **options)

    run = subprocess.run
    monkeypatch.setattr(key_file.subprocess, "run", hangs)
    assert "no ssh-agent has this key" in told(tmp_path / "key", public, SSH_AUTH_SOCK="/nowhere").message
    assert given == [10, 10]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert told(tmp_path / "key", public) == Obstacle(
        "`ssh-keygen`, which reads the file, is not on PATH", "install OpenSSH's client"
    )


def test_a_passphrase_needs_an_agent_that_has_the_key(tmp_path: Path, agent: dict[str, str]) -> None:
    public = pair(tmp_path / "key", "hunter2")
    assert "has a passphrase" in told(tmp_path / "key", public).message
    assert "no ssh-agent has this key" in told(tmp_path / "key", public, **agent).message
    asked = {**agent, "DISPLAY": "none", "SSH_ASKPASS": str(tmp_path / "ask"), "SSH_ASKPASS_REQUIRE": "force"}
    (tmp_path / "ask").write_text("#!/bin/sh\necho hunter2\n")
    (tmp_path / "ask").chmod(0o700)
    subprocess.run(["ssh-add", "-q", tmp_path / "key"], env=asked, check=True, capture_output=True)
    assert obstacle(str(tmp_path / "key"), public, agent) is None


def test_a_second_engineers_key_is_another_one_that_can_be_read(tmp_path: Path) -> None:
    public = pair(tmp_path / "key")
    pair(tmp_path / "second")
    absent = str(tmp_path / "absent")
    assert obstacle(absent, public, {"MLBATCH_SSH_KEY": str(tmp_path / "second")}) is None
    assert told(tmp_path / "key", public, MLBATCH_SSH_KEY=absent).message.startswith(f"there is no file {absent}")
