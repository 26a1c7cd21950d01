"""Helm, as tests run it."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.toolchain import without_cluster


def helm(program: Path, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
    """Return what Helm prints; it gets the values by its standard input, and no cluster but that of `--kubeconfig`."""
    command = [str(program), *arguments, "--values=-"]
    given = json.dumps(values or {})
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=without_cluster())
    assert done.returncode == 0, done.stderr
    return done.stdout
