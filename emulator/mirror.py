"""Fills the mirror of upstream manifests and charts from Go modules, and from stubs where there is no module.

The manifests hold what upstream publishes with a release: the module's default kustomization with the released image. A
site with internet access needs none of this; the catalogue of the program names the published files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from emulator.charts import sources
from emulator.paths import Paths
from emulator.toolchain import CHARTS, CLUSTER, Toolchain, ToolchainError, without_cluster


@dataclass(frozen=True)
class Source:
    """An upstream whose manifest is mirrored: its Go module, the kustomization's folder and the released image."""

    name: str
    module: str
    kustomization: str
    image: str


SOURCES = (
    Source("kueue", "sigs.k8s.io/kueue", "config/default", "registry.k8s.io/kueue/kueue"),
    Source("appwrapper", "github.com/project-codeflare/appwrapper", "config/default", "quay.io/ibm/appwrapper"),
)


def fill(paths: Paths, toolchain: Toolchain) -> None:
    """Render what is missing into `paths.mirror`, as `<name>-<version>.yaml`, and pack charts, as `.tgz`.

    Raises ToolchainError when kubectl cannot render a kustomization.
    """
    paths.mirror.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        version = toolchain.module_version(CLUSTER, source.module)
        file = _file(paths, source, version)
        if not file.exists():
            folder = toolchain.module_folder(CLUSTER, source.module) / source.kustomization
            unfinished = file.with_suffix(".unfinished")
            unfinished.write_text(_released(_kustomize(paths, folder), f"{source.image}:{version}"))
            os.replace(unfinished, file)
    sources.fill(paths.mirror, lambda module: toolchain.module_folder(CHARTS, module))


def _file(paths: Paths, source: Source, version: str) -> Path:
    return paths.mirror / f"{source.name}-{version}.yaml"


def _kustomize(paths: Paths, folder: Path) -> str:
    kubectl = shutil.which("kubectl", path=f"{paths.bin}{os.pathsep}{os.environ.get('PATH', '')}") or "kubectl"
    command = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=without_cluster())
    if done.returncode != 0:
        raise ToolchainError(f"`kubectl kustomize {folder}` failed: {done.stderr.strip()}")
    return done.stdout


def _released(rendered: str, image: str) -> str:
    """Put the released image into the controller's Deployment; every other document stays byte for byte."""
    documents = rendered.split("\n---\n")
    for index, text in enumerate(documents):
        if "\nkind: Deployment\n" in f"\n{text}\n":
            document = yaml.safe_load(text)
            for container in document["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
            documents[index] = yaml.safe_dump(document, sort_keys=False)
    return "\n---\n".join(documents)
