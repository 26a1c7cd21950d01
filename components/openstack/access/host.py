"""A VM that is reached by SSH: who it is, and how a file of it is read."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TIMEOUT: Final = 60.0
"""Seconds for one command."""
_ALIAS: Final = "mlbatch-vm"
_ABSENT: Final = 44
"""How the command ends where there is no such file."""
_REFUSED: Final = "Permission denied ("
KEY_VARIABLE: Final = "MLBATCH_SSH_KEY"
"""Names another private key's file than the settings do: on another machine, or of another engineer."""
_WRONG_KEY: Final = ("Host key verification failed", "IDENTIFICATION HAS CHANGED", "host key is known for")


class HostError(RuntimeError):
    """The VM does not answer, or not yet; the message is what ssh said."""


class RefusedKeyError(HostError):
    """The VM answers, and lets nobody in by the key."""


class CommandError(HostError):
    """Who signed in cannot read the file; the message is what the VM said."""


class WrongHostKeyError(HostError):
    """What answers at the VM's address has another key, so it is not the VM."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A VM. public_key: its line `ssh-ed25519 AAAA...`. vm: its id, for one in its place has the same address and key.

    private_key_file: the caller's, may begin with `~`; $MLBATCH_SSH_KEY comes before it.
    """

    address: str
    user: str
    private_key_file: str
    public_key: str
    vm: str
    port: int = 22

    def read(self, path: str) -> str | None:
        """Return a file's text, None when it is not there.

        Raises WrongHostKeyError when another host answers, RefusedKeyError when the key is refused, CommandError when
        the file cannot be read, HostError when no host answers.
        """
        with tempfile.NamedTemporaryFile("w", prefix="known-") as known:
            known.write(f"{_ALIAS} {self.public_key}\n")
            known.flush()
            read = f"test -e {shlex.quote(path)} || exit {_ABSENT}; cat {shlex.quote(path)}"
            command = ["ssh", *self._options(known.name), f"{self.user}@{self.address}", read]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL
                )
            except FileNotFoundError:
                raise HostError("there is no `ssh` on PATH: install OpenSSH's client") from None
            except subprocess.TimeoutExpired:
                raise HostError(f"no answer within {_TIMEOUT:.0f} s") from None
        if done.returncode == 0:
            return done.stdout
        if done.returncode == _ABSENT:
            return None
        said = _last_line(done.stderr) or _last_line(done.stdout)
        if done.returncode != 255:  # ssh(1): its own failures; else the command's exit code
            raise CommandError(f"{self.user} cannot read {path}, which ended with {done.returncode}: {said}")
        if any(said in done.stderr for said in _WRONG_KEY):
            raise WrongHostKeyError(
                f"what answers at {self.address} port {self.port} has not the VM's host key, so it is not the VM. "
                "Another machine may have its address, or somebody is in between: look at the VM's console"
            )
        if _REFUSED in done.stderr:
            raise RefusedKeyError(said)
        raise HostError(said or "ssh ended with 255")

    @property
    def key_file(self) -> str:
        """The private key's file on this machine."""
        return str(Path(os.environ.get(KEY_VARIABLE) or self.private_key_file).expanduser())

    def _options(self, known: str) -> list[str]:
        """Return what makes ssh ask nobody, and believe that one host key alone (ssh_config(5))."""
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": "20",
            # Whatever the caller's own configuration has: no agent for the VM, and no connection of somebody else's.
            "ControlMaster": "no",
            "ControlPath": "none",
            "ForwardAgent": "no",
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": _ALIAS,
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": known,
        }
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return [*options, "-i", self.key_file, "-p", str(self.port)]


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
