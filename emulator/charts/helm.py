"""Runs Helm with a kubeconfig of its own, quietly and without the user's repositories, plugins and cache."""

from __future__ import annotations

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

_SECONDS_BEYOND_TIMEOUT = 60.0


class HelmError(Exception):
    """Helm ended with an error; the message is what it said."""


class Helm:
    """One Helm command and the cluster it talks to.

    closing: given what ends a running command early, guards the wait for it; see `Operation.closing`.
    """

    def __init__(self, binary: Path, kubeconfig: Mapping[str, Any]) -> None:
        self._binary = binary
        self._kubeconfig = kubeconfig

    def template(self, release: str, namespace: str, chart: Path, values: Mapping[str, Any], version: str) -> str:
        """Return what a chart renders to, with its hooks, without asking a cluster.

        version: the Kubernetes version to render for. Raises HelmError for what a template or schema refuses.
        """
        arguments = ["template", release, str(chart), f"--namespace={namespace}", f"--kube-version={version}"]
        return self._run(arguments, values, 0, None)

    def install(
        self,
        release: str,
        namespace: str,
        chart: Path,
        values: Mapping[str, Any],
        *,
        upgrade: bool,
        timeout: int,
        options: Sequence[str],
        closing: Callable[[Callable[[], object]], AbstractContextManager[None]],
    ) -> None:
        """Install or upgrade a release, without the chart's hooks and without what `left_out` drops.

        timeout: seconds that Helm may wait for. options: further arguments. Raises HelmError.
        """
        module = left_out.__name__
        arguments = [
            *(["upgrade", "--reset-values"] if upgrade else ["install"]),
            *(release, str(chart), f"--namespace={namespace}", f"--timeout={timeout}s", "--no-hooks", "--hide-notes"),
            *(f"--post-renderer={sys.executable}", "--post-renderer-args=-m", f"--post-renderer-args={module}"),
            *("--burst-limit=400", "--qps=200", *options),
        ]
        self._run(arguments, values, timeout, closing)

    def uninstall(
        self,
        release: str,
        namespace: str,
        *,
        timeout: int,
        wait: bool,
        closing: Callable[[Callable[[], object]], AbstractContextManager[None]],
    ) -> None:
        """Remove a release and its objects; definitions of custom resources stay. One that is gone is a success."""
        arguments = ["uninstall", release, f"--namespace={namespace}", f"--timeout={timeout}s", "--no-hooks"]
        arguments += ["--ignore-not-found", *(["--wait"] if wait else [])]
        self._run(arguments, None, timeout, closing)

    def _run(
        self,
        arguments: Sequence[str],
        values: Mapping[str, Any] | None,
        timeout: int,
        closing: Callable[[Callable[[], object]], AbstractContextManager[None]] | None,
    ) -> str:
        if not self._binary.exists():
            raise HelmError(f"{self._binary} is missing: build the tools (`make build`)")
        # Values and credentials may be secret: they go through files that only this user can read.
        with tempfile.TemporaryDirectory(prefix="mlbatch-helm-") as name:
            folder = Path(name)
            environment = {
                **os.environ,
                **{f"HELM_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")},
                "KUBECONFIG": str(folder / "kubeconfig"),
            }
            (folder / "kubeconfig").write_text(json.dumps(self._kubeconfig))
            command = [str(self._binary), *arguments]
            if values is not None:
                (folder / "values.yaml").write_text(json.dumps(values))
                command.append(f"--values={folder / 'values.yaml'}")
            with subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=folder,
            ) as process:
                try:
                    if closing is None:
                        output, errors = process.communicate(timeout=timeout + _SECONDS_BEYOND_TIMEOUT)
                    else:
                        with closing(process.terminate):
                            output, errors = process.communicate(timeout=timeout + _SECONDS_BEYOND_TIMEOUT)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise HelmError(f"helm {arguments[0]} did not end within {timeout} s and was stopped") from None
            if process.returncode != 0:
                raise HelmError(said(errors) or f"helm {arguments[0]} ended with exit code {process.returncode}")
            return output


def said(errors: str) -> str:
    """Return the error in what Helm printed, without the warnings before it and its hint to `--debug`."""
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("Use --debug flag")]
    first = next((number for number, line in enumerate(lines) if line.startswith("Error: ")), 0)
    return "\n".join(lines[first:]).removeprefix("Error: ").strip()
