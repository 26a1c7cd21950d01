"""The engine's environment: servers, programs and files of the local environment, and few of the user's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

INHERITED: Final = frozenset(
    """
    COLORTERM COLUMNS GOGC HOME LANG LANGUAGE LD_LIBRARY_PATH LINES LOGNAME NO_COLOR SHELL TEMP TERM TMP TMPDIR TZ USER
    """.split()  # noqa: SIM905 - a list would have a line for each
)
"""Variables that the engine inherits, in addition to LC_*. None of them names a cluster, a cloud, a backend, a
credential, a plugin or a proxy."""


LOOPBACK: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The local environment of an engine.

    kubeconfig: of the local cluster. mirror: the folder of upstream's files, None to leave the stack's settings
    unchanged. providers: loopback ports of the emulated providers, by plugin. programs: folders that are searched for
    programs before those of the user. plugins: folders of allowed official plugins. variables: other variables for the
    engine, its plugins and the program, for example credentials of a cloud. ssh_key: private key for that cloud's VMs,
    next to the public one (`.pub`), None to use the key in the settings. disposable: data may be lost, so stacks do not
    protect resources. reads_secrets: the local passphrase can decrypt secrets in a stack's file. If false, each secret
    gets a made-up value.
    """

    kubeconfig: Path
    mirror: Path | None = None
    providers: Mapping[str, int] = field(default_factory=dict)
    programs: tuple[Path, ...] = ()
    plugins: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    ssh_key: Path | None = None
    disposable: bool = False
    reads_secrets: bool = True

    def dump(self) -> str:
        """Return the environment on one line, for another process."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def load(cls, text: str) -> Environment:
        """Parse the output of `dump`. Raises ValueError if it is invalid."""
        return TypeAdapter(cls).validate_json(text)


def inherited(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the user's variables that the engine may have."""
    return {name: value for name, value in variables.items() if name in INHERITED or name.startswith("LC_")}


def past_proxies(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return variables that exclude this machine's addresses from the user's proxy, if there is one."""
    found = {}
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in variables.get(name, "").split(",") if host]
        found[name] = ",".join(dict.fromkeys([*hosts, *LOOPBACK]))
    return found
