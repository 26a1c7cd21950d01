"""Runs Helm with a kubeconfig of its own, quietly and without the user's repositories, plugins and cache."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from emulator.charts import left_out

_SECONDS_BEYOND_TIMEOUT = 60


class HelmError(Exception):
    """Helm ended with an error; the message is what it said."""


class Helm:
    """One Helm command and the cluster it talks to; each method raises HelmError.

    closing: given what ends a running command early, guards the wait for it; see `Operation.closing`.
    """

    def __init__(
        self,
        binary: Path,
        kubeconfig: Mapping[str, Any],
        closing: Callable[[Callable[[], object]], AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> None:
        self._binary = binary
        self._kubeconfig = kubeconfig
        self._closing = closing

    def template(self, release: str, namespace: str, chart: Path, values: Mapping[str, Any], version: str) -> str:
        """Return what a chart renders to for a version of Kubernetes, with its hooks, without asking a cluster."""
        options = [f"--namespace={namespace}", f"--kube-version={version}"]
        return self._run(["template", release, str(chart), *options], values, 0)

    def install(
        self,
        release: str,
        namespace: str,
        chart: Path,
        values: Mapping[str, Any],
        options: Sequence[str],
        *,
        upgrade: bool,
        timeout: int,
    ) -> None:
        """Install or upgrade a release, without the chart's hooks and without what `left_out` drops.

        timeout: seconds that Helm may wait for.
        """
        command = ["upgrade", "--reset-values"] if upgrade else ["install"]
        command += [release, str(chart), f"--namespace={namespace}", f"--timeout={timeout}s", *options]
        command += ["--no-hooks", "--hide-notes", "--burst-limit=400", "--qps=200", f"--post-renderer={sys.executable}"]
        command += [f"--post-renderer-args={argument}" for argument in ("-m", left_out.__name__)]
        self._run(command, values, timeout)

    def uninstall(self, release: str, namespace: str, options: Sequence[str], *, timeout: int) -> None:
        """Remove a release and its objects; definitions of custom resources stay. One that is gone is a success."""
        command = ["uninstall", release, f"--namespace={namespace}", f"--timeout={timeout}s", "--no-hooks"]
        self._run([*command, "--ignore-not-found", *options], {}, timeout)

    def _run(self, command: Sequence[str], values: Mapping[str, Any], timeout: int) -> str:
        if not self._binary.exists():
            raise HelmError(f"{self._binary} is missing: build the tools (`make build`)")
        # Values and credentials may be secret: they go through files that only this user can read.
        with tempfile.TemporaryDirectory(prefix="mlbatch-helm-") as name:
            folder = Path(name)
            environment = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
            environment["KUBECONFIG"] = str(folder / "kubeconfig")
            (folder / "kubeconfig").write_text(json.dumps(self._kubeconfig))
            (folder / "values.yaml").write_text(json.dumps(values))
            with_values = [f"--values={folder / 'values.yaml'}"] if values else []
            with subprocess.Popen(
                [str(self._binary), *command, *with_values],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **environment},
                cwd=folder,
            ) as process:
                try:
                    with self._closing(process.terminate):
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
