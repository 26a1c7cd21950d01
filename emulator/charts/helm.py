"""Runs Helm with a kubeconfig of its own, quietly and without the user's repositories, plugins and cache."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SECONDS_BEYOND_TIMEOUT = 60


class HelmError(Exception):
    """Helm ended with an error; the message is what it said."""


@dataclass(frozen=True)
class Helm:
    """Helm's command and the cluster it talks to.

    closing: given what ends a running command early, guards the wait for it; see `Operation.closing`.
    """

    binary: Path
    kubeconfig: Mapping[str, Any]
    closing: Callable[[Callable[[], object]], AbstractContextManager[object]] = contextlib.nullcontext

    def run(self, command: Sequence[str], values: Mapping[str, Any] | None = None, timeout: int = 0) -> str:
        """Return what a command prints. timeout: seconds that it may wait for something. Raises HelmError."""
        if not self.binary.exists():
            raise HelmError(f"{self.binary} is missing: build the tools (`make build`)")
        # Values and credentials may be secret: they go through files that only this user can read.
        with tempfile.TemporaryDirectory(prefix="mlbatch-helm-") as name:
            folder = Path(name)
            environment = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
            environment["KUBECONFIG"] = str(folder / "kubeconfig")
            (folder / "kubeconfig").write_text(json.dumps(self.kubeconfig))
            (folder / "values.yaml").write_text(json.dumps(values))
            with_values = [f"--values={folder / 'values.yaml'}"] if values else []
            with subprocess.Popen(
                [str(self.binary), *command, *with_values],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **environment},
                cwd=folder,
            ) as process:
                try:
                    with self.closing(process.terminate):
                        output, errors = process.communicate(timeout=timeout + _SECONDS_BEYOND_TIMEOUT)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise HelmError(f"helm {command[0]} did not end within {timeout} s and was stopped") from None
            if process.returncode != 0:
                raise HelmError(said(errors) or f"helm {command[0]} ended with exit code {process.returncode}")
            return output


def said(errors: str) -> str:
    """Return the error in what Helm printed, without the warnings before it and its hint to `--debug`."""
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("Use --debug flag")]
    first = next((number for number, line in enumerate(lines) if line.startswith("Error: ")), 0)
    return "\n".join(lines[first:]).removeprefix("Error: ").strip()
