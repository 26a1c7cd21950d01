"""Runs Helm with a kubeconfig of its own, quietly and without the user's repositories, plugins and cache."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SECONDS = 60


class HelmError(Exception):
    """Helm ended with an error; the message is what it said."""


@dataclass(frozen=True)
class Helm:
    """Helm's command and the cluster it talks to."""

    binary: Path
    kubeconfig: Mapping[str, Any]

    def run(self, command: Sequence[str], values: Mapping[str, Any] | None = None) -> str:
        """Return what a command prints. Raises HelmError, also for one that takes more than a minute."""
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
            try:
                done = subprocess.run(
                    [str(self.binary), *command, *with_values],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    env={**os.environ, **environment},
                    cwd=folder,
                    timeout=_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise HelmError(f"helm {command[0]} did not end within {_SECONDS} s and was stopped") from None
        if done.returncode != 0:
            raise HelmError(said(done.stderr) or f"helm {command[0]} ended with exit code {done.returncode}")
        return done.stdout


def said(errors: str) -> str:
    """Return the error in what Helm printed, without the warnings before it and its hint to `--debug`."""
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("Use --debug flag")]
    first = next((number for number, line in enumerate(lines) if line.startswith("Error: ")), 0)
    return "\n".join(lines[first:]).removeprefix("Error: ").strip()
