"""A VM that is reached by SSH: its identity, and reading its files."""

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
"""Exit code of the command if the file does not exist."""
_REFUSED: Final = "Permission denied ("
KEY_VARIABLE: Final = "MLBATCH_SSH_KEY"
"""Variable with the path of a private key that overrides the settings, for another machine or another engineer."""
_WRONG_KEY: Final = ("Host key verification failed", "IDENTIFICATION HAS CHANGED", "host key is known for")


class HostError(RuntimeError):
    """The VM does not answer, or not yet. The message is ssh's."""


class RefusedKeyError(HostError):
    """The VM answers, but refuses the key."""


class CommandError(HostError):
    """The user cannot read the file. The message is the VM's."""


class WrongHostKeyError(HostError):
    """The host at the VM's address has another key, so it is not the VM."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A VM.

    public_key: its line `ssh-ed25519 AAAA...`.
    vm: its ID. A replacement has the same address and key, but another ID.
    private_key_file: the caller's, may begin with `~`. $MLBATCH_SSH_KEY overrides it.
    """

    address: str
    user: str
    private_key_file: str
    public_key: str
    vm: str
    port: int = 22

    def read(self, path: str) -> str | None:
        """Return a file's text, or None if it does not exist.

        Raises WrongHostKeyError if another host answers, RefusedKeyError if the key is refused, CommandError if the
        file cannot be read, and HostError if no host answers.
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
        if done.returncode != 255:  # 255 is a failure of ssh itself (ssh(1))
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
        """Path of the private key on this machine."""
        return str(Path(os.environ.get(KEY_VARIABLE) or self.private_key_file).expanduser())

    def _options(self, known: str) -> list[str]:
        """Return options so that ssh never prompts and accepts only this host key (ssh_config(5))."""
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": "20",
            # These override the caller's configuration: no agent for the VM, and no shared connection.
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
