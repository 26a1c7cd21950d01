"""The provider as the engine finds plugins: a folder with a program in it, which the engine starts and ends.

So it has the engine's environment, as the official one has it, and with it the variables of an openrc file.
"""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from emulator.paths import Paths

NAME: Final = "openstack"


def install(paths: Paths) -> Path:
    """Return the plugin's folder beneath an environment's state, written where it is not there yet."""
    folder = paths.state / "plugins" / f"resource-{NAME}-v{version(f'pulumi-{NAME}')}"
    program = folder / f"pulumi-resource-{NAME}"
    module = f"{__package__}"
    command = f'PYTHONPATH={shlex.quote(str(paths.root))} exec {shlex.quote(sys.executable)} -m {module} "$@"'
    text = f"#!/bin/sh\n{command}\n"
    if not program.is_file() or program.read_text() != text:
        folder.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(".partial")
        partial.write_text(text)
        partial.chmod(0o700)
        partial.rename(program)
    return folder
