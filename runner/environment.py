"""What the engine finds around it: servers, programs and files of the local environment, and little of the user's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

INHERITED: Final = frozenset(
    {
        "COLORTERM",
        "COLUMNS",
        "GOGC",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "LINES",
        "LOGNAME",
        "NO_COLOR",
        "SHELL",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "TZ",
        "USER",
    }
)
"""Variables that the engine inherits, beside LC_*. Nothing that names a cluster, a cloud, a backend, a credential, a
plugin or a proxy is among them."""


LOOPBACK: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The local environment of an engine.

    kubeconfig: of the local cluster. mirror: the folder that holds upstream's files; None leaves the stack's settings
    as they are written. providers: loopback ports of the emulated providers, by plugin. programs: folders that are
    searched for programs before those of the user. plugins: folders of official plugins that may be used.
    variables: what the engine, its plugins and the program find besides, such as the credentials of a cloud.
    ssh_key: private key of who works in that cloud, the public one beside it (`.pub`); None leaves the settings' own.
    disposable: what stands in it may be lost, so that stacks protect nothing from being deleted.
    reads_secrets: a stack's file may hold secrets that the local passphrase has encrypted; otherwise a made-up value
    stands in for every one.
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

    def with_mirror(self, folder: Path) -> Environment:
        """Return the same with other files of upstream."""
        return replace(self, mirror=folder)

    def dump(self) -> str:
        """Return it on one line, for another process."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def load(cls, text: str) -> Environment:
        """Read what `dump` has written; raises ValueError where it is something else."""
        try:
            found = json.loads(text)
            return cls(
                kubeconfig=Path(found["kubeconfig"]),
                mirror=Path(found["mirror"]) if found["mirror"] else None,
                providers={str(plugin): int(port) for plugin, port in found["providers"].items()},
                programs=tuple(map(Path, found["programs"])),
                plugins=tuple(map(Path, found["plugins"])),
                variables={str(name): str(value) for name, value in found["variables"].items()},
                ssh_key=Path(found["ssh_key"]) if found["ssh_key"] else None,
                disposable=bool(found["disposable"]),
                reads_secrets=bool(found["reads_secrets"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no environment of an engine: {error!r}") from None


def inherited(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return of the user's variables those that may reach the engine."""
    return {name: value for name, value in variables.items() if name in INHERITED or name.startswith("LC_")}


def past_proxies(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that keep a user's proxy, where there is one, from what is on this machine."""
    found = {}
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in variables.get(name, "").split(",") if host]
        found[name] = ",".join(dict.fromkeys([*hosts, *LOOPBACK]))
    return found
