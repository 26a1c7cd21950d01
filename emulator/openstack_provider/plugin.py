"""The provider as the engine finds plugins: a folder with a program in it, which the engine starts and ends.

So it has the engine's environment, as the official one has it, and with it the variables of an openrc file.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.paths import Paths
from emulator.plugin.errors import ProviderError
from runner.engine import EngineError

if TYPE_CHECKING:
    from emulator.openstack_provider.recovery import Read

NAME: Final = "openstack"


def journal(paths: Paths) -> Path:
    """Return the folder of an environment in which the plugin keeps what no engine has recorded yet."""
    return paths.state / "openstack-journal"


def install(paths: Paths) -> Path:
    """Return the plugin's folder beneath an environment's state, written where it is not there yet."""
    folder = paths.state / "plugins" / f"resource-{NAME}-v{version(f'pulumi-{NAME}')}"
    program = folder / f"pulumi-resource-{NAME}"
    words = [sys.executable, "-m", str(__package__), "--local", "--journal", str(journal(paths))]
    text = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(paths.root))} exec {shlex.join(words)} "$@"\n'
    if not program.is_file() or program.read_text() != text:
        folder.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(".partial")
        partial.write_text(text)
        partial.chmod(0o700)
        partial.rename(program)
    return folder


def is_ours(program: Path) -> bool:
    """Tell whether a plugin's program is one that `install` has written: official ones are no scripts."""
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def orphans(paths: Paths, variables: Mapping[str, str]) -> Mapping[str, Read]:
    """Return the resources that were created and that no engine has shown to know since, by URN.

    They are what an update has created that was killed, or that has ended just now. variables: the engine's
    environment. Raises EngineError where the OpenStack cannot be asked for them.
    """
    if not any(journal(paths).glob("*.json")):
        return {}
    # Most commands have nothing to do with an OpenStack, and need not wait for these.
    from emulator.openstack_provider.recovery import orphans

    try:
        return orphans(paths, variables)
    except ProviderError as error:
        raise EngineError(f"what a killed update has created cannot be looked up: {error}") from None
