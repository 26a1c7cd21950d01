"""A VM that is reached by SSH: who it is, and how a file of it is read."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TIMEOUT: Final = 60.0
"""Seconds for one command."""
_ALIAS: Final = "mlbatch-vm"
_WRONG_KEY: Final = ("Host key verification failed", "IDENTIFICATION HAS CHANGED", "host key is known for")


class HostError(RuntimeError):
    """The VM does not answer, or not yet; the message is what ssh said."""


class WrongHostKeyError(HostError):
    """What answers at the VM's address has another key, so it is not the VM."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A VM. public_key: its line `ssh-ed25519 AAAA...`; private_key_file: the caller's, may begin with `~`."""

    address: str
    user: str
    private_key_file: str
    public_key: str
    port: int = 22

    def read(self, path: str) -> str | None:
        """Return a file's text, None when it is not there.

        Raises WrongHostKeyError when another host answers, HostError when none does.
        """
        with tempfile.NamedTemporaryFile("w", prefix="known-") as known:
            known.write(f"{_ALIAS} {self.public_key}\n")
            known.flush()
            command = ["ssh", *self._options(known.name), f"{self.user}@{self.address}", f"cat {path}"]
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
        if done.returncode != 255:  # ssh(1): its own failures; else the command's exit code
            return None
        if any(said in done.stderr for said in _WRONG_KEY):
            raise WrongHostKeyError(
                f"what answers at {self.address} port {self.port} has not the VM's host key, so it is not the VM. "
                "Another machine may have its address, or somebody is in between: look at the VM's console"
            )
        raise HostError(done.stderr.strip().rpartition("\n")[2] or "ssh ended with 255")

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
        return [*options, "-i", str(Path(self.private_key_file).expanduser()), "-p", str(self.port)]
