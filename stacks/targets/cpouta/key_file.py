"""Whether the machine that runs the engine has the private half of the key pair, before a VM is made that it awaits."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from components.openstack.access.host import KEY_VARIABLE

_SECONDS: Final = 10
_NONE: Final = "`ssh-keygen -t ed25519 -N '' -f {file}` makes a pair; put the content of {file}.pub into sshPublicKey"


@dataclass(frozen=True)
class Obstacle:
    """Why nobody can sign in by a file, and what to do; in the words of a ConfigError."""

    message: str
    hint: str


def obstacle(written: str, public: str, environment: Mapping[str, str]) -> Obstacle | None:
    """Return why ssh cannot sign in by a file where the VM lets in who has a public key, None where it can.

    ssh-keygen reads the file as ssh does: with the same formats, and the same care for who else may read it. A file
    with a passphrase needs an agent that has the key, for nobody is asked while the engine runs (ssh(1), BatchMode).
    """
    file = environment.get(KEY_VARIABLE) or written
    if (found := _no_file(Path(file).expanduser(), file)) is not None:
        return found
    try:
        done = _run("ssh-keygen", "-y", "-P", "", "-f", str(Path(file).expanduser()))
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return Obstacle("there is no `ssh-keygen` on PATH that could read it", "install OpenSSH's client")
    if done.returncode == 0:
        return None if environment.get(KEY_VARIABLE) or _same(done.stdout, public) else _another(file)
    if "incorrect passphrase" in done.stderr:
        return None if _has_agent(public, environment) else _locked(file)
    if "bad permissions" in done.stderr:
        return Obstacle("others may read it, and ssh takes no such key", f"chmod 600 {file}")
    said = done.stderr.strip().rpartition("\n")[2]
    return Obstacle(
        f"OpenSSH cannot read {file} as a private key: {said}", "name the file of sshPublicKey's private half"
    )


def _no_file(path: Path, file: str) -> Obstacle | None:
    if path.is_dir():
        return Obstacle(f"{file} is a folder", "name the file of the private key in it")
    if not path.exists():
        return Obstacle(f"there is no file {file} on this machine", _NONE.format(file=file))
    return None


def _another(file: str) -> Obstacle:
    return Obstacle(
        f"{file} is not the private half of sshPublicKey, so that the VM would let nobody in by it",
        f"set sshPublicKey to what `ssh-keygen -y -f {file}` prints, or name the file of its private half",
    )


def _locked(file: str) -> Obstacle:
    return Obstacle(
        f"{file} has a passphrase, nobody is asked for it while the engine runs, and no ssh-agent has this key",
        f"run `ssh-add {file}` first, or take the passphrase off with `ssh-keygen -p -f {file}`",
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
    """Whether two lines are the same key, whatever is remarked behind it."""
    return one.split()[:2] == other.split()[:2]


def _run(*command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, env=environment
    )
