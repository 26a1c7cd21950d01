"""Renders kustomizations with kubectl."""

import os
import shutil
import subprocess
from pathlib import Path

from emulator.paths import Paths
from emulator.toolchain import ToolchainError, without_cluster


def render(paths: Paths, folder: Path) -> str:
    """Return the YAML documents of a kustomization. Raises ToolchainError if kubectl cannot render it."""
    kubectl = shutil.which("kubectl", path=f"{paths.bin}{os.pathsep}{os.environ.get('PATH', '')}") or "kubectl"
    command = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=without_cluster())
    if done.returncode != 0:
        raise ToolchainError(f"`kubectl kustomize {folder}` failed: {done.stderr.strip()}")
    return done.stdout
