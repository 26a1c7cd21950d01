"""Fills the mirror of upstream manifests and charts from Go modules, or from stubs for the others.

A manifest equals upstream's release: the module's default kustomization with the released image. A site with internet
access does not need the mirror, because the program's catalogue has the addresses of the published files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from emulator import mlops
from emulator.charts import sources
from emulator.openshift import definitions
from emulator.openshift import operator_hub as hub
from emulator.paths import Paths
from emulator.toolchain import (
    CHARTS,
    CORE,
    KUBERNETES_1_34,
    KUBERNETES_1_36,
    KUEUE,
    KUEUE_0_18,
    Module,
    Toolchain,
    ToolchainError,
    pinned_version,
    without_cluster,
)
from runner.files import locked, replacing


@dataclass(frozen=True)
class Source:
    """An upstream with a mirrored manifest.

    module: the Go module.
    image: the released image.
    tools: the modules that pin its versions, the default first.
    """

    name: str
    module: str
    image: str
    tools: tuple[Module, ...]


SOURCES = (
    Source("kueue", "sigs.k8s.io/kueue", "registry.k8s.io/kueue/kueue", (KUEUE, KUEUE_0_18)),
    Source("jobset", "sigs.k8s.io/jobset", "registry.k8s.io/jobset/jobset", (KUBERNETES_1_36,)),
    Source("appwrapper", "github.com/project-codeflare/appwrapper", "quay.io/ibm/appwrapper", (CORE,)),
)


@dataclass(frozen=True)
class Definitions:
    """A file that is mirrored unchanged.

    name: of its artifact.
    module, file: its Go module and its path there.
    tool: the module that pins the Go module.
    """

    name: str
    module: str
    file: str
    tool: Module = CORE


_RAY = "github.com/ray-project/kuberay/ray-operator"
_TRAINER = "github.com/kubeflow/trainer/v2"
_SCHEDULER_PLUGINS = "sigs.k8s.io/scheduler-plugins"
DEFINITIONS = (
    Definitions(
        "scheduler-plugins", _SCHEDULER_PLUGINS, "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml", KUBERNETES_1_34
    ),
    Definitions(
        "scheduler-plugins-elasticquotas",
        _SCHEDULER_PLUGINS,
        "config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
        KUBERNETES_1_34,
    ),
    Definitions(
        "training-operator",
        "github.com/kubeflow/training-operator",
        "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
        KUBERNETES_1_36,
    ),
    *(
        Definitions(
            f"trainer-{kind}", _TRAINER, f"manifests/base/crds/trainer.kubeflow.org_{kind}.yaml", KUBERNETES_1_36
        )
        for kind in ("trainjobs", "clustertrainingruntimes", "trainingruntimes")
    ),
    Definitions("kuberay-rayclusters", _RAY, "config/crd/bases/ray.io_rayclusters.yaml", KUBERNETES_1_34),
    Definitions("kuberay-rayjobs", _RAY, "config/crd/bases/ray.io_rayjobs.yaml", KUBERNETES_1_34),
    Definitions("kuberay-rayservices", _RAY, "config/crd/bases/ray.io_rayservices.yaml", KUBERNETES_1_34),
    Definitions("kuberay-role", _RAY, "config/rbac/role.yaml", KUBERNETES_1_34),
)


_GENERATORS = {"v0.33.5": "v0.17.3", "v0.31.8": "v0.16.5", "v0.29.7": "v0.14.0"}
"""Older scheduler-plugins, and the version of controller-gen that wrote their definitions. The definitions have no
other difference from v0.34.7 (kubernetes-sigs/scheduler-plugins, config/crd/bases).
"""
_GENERATOR = "controller-gen.kubebuilder.io/version: "

DASHBOARDS = ("grafana-dashboard-23123-1", "grafana-dashboard-12239-2")
"""Dashboards of grafana.com, which is not available here; each gets an empty file."""


def fill(paths: Paths, toolchain: Toolchain, *, openshift: bool = False, operator_hub: bool = False) -> None:
    """Write missing manifests into `paths.mirror`, as `<name>-<version>.yaml`, and charts, as `.tgz`.

    openshift: also the definitions of the local OpenShift.
    operator_hub: also its catalogs.

    Raises ToolchainError if kubectl cannot render a kustomization.
    """
    paths.mirror.mkdir(parents=True, exist_ok=True)
    with locked(paths.state / "mirror.lock"):  # parallel targets of make fill the same mirror
        _fill(paths, toolchain, openshift=openshift, operator_hub=operator_hub)


def _fill(paths: Paths, toolchain: Toolchain, *, openshift: bool, operator_hub: bool) -> None:
    for source in SOURCES:
        for tools in source.tools:
            render(source, tools, paths, toolchain)
    for name in DASHBOARDS:
        inputs = [{"name": "DS_PROMETHEUS", "type": "datasource", "pluginId": "prometheus"}]
        empty = {"title": f"{name}, which is not available here", "__inputs": inputs, "panels": []}
        (paths.mirror / f"{name}.json").write_text(json.dumps(empty))
    for each in DEFINITIONS:
        version = pinned_version(each.tool, each.module)
        generators = _GENERATORS if each.module == _SCHEDULER_PLUGINS else {}
        for wanted in (version, *generators):
            file = paths.mirror / f"{each.name}-{wanted}.yaml"
            if not file.exists():
                text = (toolchain.module_folder(each.tool, each.module) / each.file).read_text()
                with replacing(file) as unfinished:
                    unfinished.write_text(_generated_by(generators[wanted], text) if wanted in generators else text)
    if openshift:
        definitions.fill(paths, toolchain)
    if operator_hub:
        hub.fill(paths, toolchain)
    mlops.fill(paths.mirror)
    sources.fill(paths.mirror, lambda module: toolchain.module_folder(CHARTS, module))


def render(source: Source, tools: Module, paths: Paths, toolchain: Toolchain) -> None:
    """Render an upstream's manifest in the version that a module pins, if the mirror does not have it."""
    version = pinned_version(tools, source.module)
    file = paths.mirror / f"{source.name}-{version}.yaml"
    if not file.exists():
        manifest = _kustomize(paths, toolchain.module_folder(tools, source.module) / "config" / "default")
        with replacing(file) as unfinished:
            unfinished.write_text(_released(manifest, f"{source.image}:{version}"))


def _generated_by(generator: str, definition: str) -> str:
    """Return a definition in the form of another version of controller-gen."""
    before, found, after = definition.partition(_GENERATOR)
    if not found:
        raise ToolchainError(f"a definition of scheduler-plugins does not contain {_GENERATOR.strip()!r}")
    return f"{before}{found}{generator}\n{after.partition(chr(10))[2]}"


def _kustomize(paths: Paths, folder: Path) -> str:
    kubectl = shutil.which("kubectl", path=f"{paths.bin}{os.pathsep}{os.environ.get('PATH', '')}") or "kubectl"
    command = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=without_cluster())
    if done.returncode != 0:
        raise ToolchainError(f"`kubectl kustomize {folder}` failed: {done.stderr.strip()}")
    return done.stdout


def _released(rendered: str, image: str) -> str:
    """Return the manifest with the released image in the controller's Deployment, otherwise unchanged."""
    documents = rendered.split("\n---\n")
    for index, text in enumerate(documents):
        if "\nkind: Deployment\n" in f"\n{text}\n":
            document = yaml.safe_load(text)
            for container in document["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
            documents[index] = yaml.safe_dump(document, sort_keys=False)
    return "\n---\n".join(documents)
