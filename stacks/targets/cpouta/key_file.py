"""Checks, before a VM is created, that the machine that runs Pulumi has the private key."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from components.openstack.access.host import KEY_VARIABLE

_SECONDS: Final = 10
_NONE: Final = "run `ssh-keygen -t ed25519 -N '' -f {file}` and write the content of {file}.pub into sshPublicKey"


@dataclass(frozen=True)
class Obstacle:
    """Why a private key file cannot be used, and the fix, in the words of a ConfigError."""

    message: str
    hint: str


def obstacle(written: str, public: str, environment: Mapping[str, str]) -> Obstacle | None:
    """Return why ssh cannot sign in to the VM with a private key file, or None if it can.

    ssh-keygen reads the file like ssh: with the same formats and the same check of permissions. A file with a
    passphrase needs an agent with the key, because ssh cannot ask for it here (ssh(1), BatchMode).
    """
    file = environment.get(KEY_VARIABLE) or written
    if (found := _no_file(Path(file).expanduser(), file)) is not None:
        return found
    try:
        done = _run("ssh-keygen", "-y", "-P", "", "-f", str(Path(file).expanduser()))
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return Obstacle("`ssh-keygen`, which reads the file, is not on PATH", "install OpenSSH's client")
    if done.returncode == 0:
        return None if environment.get(KEY_VARIABLE) or _same(done.stdout, public) else _another(file)
    if "incorrect passphrase" in done.stderr:
        return None if _has_agent(public, environment) else _locked(file)
    if "bad permissions" in done.stderr:
        return Obstacle("other users can read the file, and ssh rejects such a key", f"run `chmod 600 {file}`")
    said = done.stderr.strip().rpartition("\n")[2]
    return Obstacle(
        f"OpenSSH cannot read {file} as a private key: {said}", "name the file of sshPublicKey's private key"
    )


def _no_file(path: Path, file: str) -> Obstacle | None:
    if path.is_dir():
        return Obstacle(f"{file} is a folder", "name the file of the private key in it")
    if not path.exists():
        return Obstacle(f"there is no file {file} on this machine", _NONE.format(file=file))
    return None


def _another(file: str) -> Obstacle:
    return Obstacle(
        f"{file} is not the private key of sshPublicKey, so the VM would reject it",
        f"set sshPublicKey to the output of `ssh-keygen -y -f {file}`, or name the file of its private key",
    )


def _locked(file: str) -> Obstacle:
    return Obstacle(
        f"{file} has a passphrase, which ssh cannot ask for here, and no ssh-agent has this key",
        f"run `ssh-add {file}` first, or remove the passphrase with `ssh-keygen -p -f {file}`",
    )


def _has_agent(public: str, environment: Mapping[str, str]) -> bool:
    if not environment.get("SSH_AUTH_SOCK"):
        return False
    try:
        done = _run("ssh-add", "-L", environment=environment)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return any(_same(line, public) for line in done.stdout.splitlines())


def _same(one: str, other: str) -> bool:
    """Whether two lines have the same key, regardless of its comment."""
    return one.split()[:2] == other.split()[:2]


def _run(*command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, env=environment
    )
