"""Fills the mirror of upstream manifests and charts from Go modules, or from stubs for the others.

A manifest equals upstream's release: the module's default kustomization with the released image. A site with internet
access does not need the mirror, because the program's catalogue has the addresses of the published files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from emulator import kustomize, mlops
from emulator.charts import sources
from emulator.openshift import definitions
from emulator.openshift import operator_hub as hub
from emulator.paths import Paths
from emulator.toolchain import CHARTS, MODULES, Module, Toolchain, ToolchainError, pinned_version
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


@dataclass(frozen=True)
class Definitions:
    """A file that is mirrored unchanged.

    name: of its artifact.
    module, file: its Go module and its path there.
    tool: the module that pins the Go module.
    generators: other versions, each with the version of controller-gen that wrote their definitions. They have no other
    difference (kubernetes-sigs/scheduler-plugins, config/crd/bases, compared with v0.34.7). v0.35.7 was compared at
    903da7df, which has its Kubernetes libraries.
    """

    name: str
    module: str
    file: str
    tool: Module
    generators: Mapping[str, str] = field(default_factory=dict)


_TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
SOURCES = tuple(
    Source(**{**each, "tools": tuple(MODULES[name] for name in each["tools"])}) for each in _TABLE["sources"]
)
DEFINITIONS = tuple(Definitions(**{**each, "tool": MODULES[each["tool"]]}) for each in _TABLE["definitions"])
DASHBOARDS = tuple(_TABLE["dashboards"])
_GENERATOR = "controller-gen.kubebuilder.io/version: "


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
        for wanted in (version, *each.generators):
            file = paths.mirror / f"{each.name}-{wanted}.yaml"
            if not file.exists():
                text = (toolchain.module_folder(each.tool, each.module) / each.file).read_text()
                with replacing(file) as unfinished:
                    unfinished.write_text(
                        _generated_by(each.generators[wanted], text) if wanted in each.generators else text
                    )
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
        manifest = kustomize.render(paths, toolchain.module_folder(tools, source.module) / "config" / "default")
        with replacing(file) as unfinished:
            unfinished.write_text(_released(manifest, f"{source.image}:{version}"))


def _generated_by(generator: str, definition: str) -> str:
    """Return a definition in the form of another version of controller-gen."""
    before, found, after = definition.partition(_GENERATOR)
    if not found:
        raise ToolchainError(f"a definition of scheduler-plugins does not contain {_GENERATOR.strip()!r}")
    return f"{before}{found}{generator}\n{after.partition(chr(10))[2]}"


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
