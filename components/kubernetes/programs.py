"""Programs of this project that run in pods, from the files of a ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import config_map, files_checksum
from components.kubernetes.volumes import Volume

FILES_FOLDER: Final = "/etc/mlbatch"
"""Where the files are mounted in every pod, those of jobs among them."""

API_CLIENT: Final = "components.kubernetes.in_cluster"
"""The module by which programs ask the API server."""

ENVIRONMENT: Final = (
    {"name": "PYTHONPATH", "value": FILES_FOLDER},
    {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
)
"""Of the containers that run such a program."""
OWN_NODE: Final = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
"""Of those that act on the node that they run on."""
OWN_POD: Final = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
"""Of those that go by the pod that they run in."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A Python module with what it needs; the image needs Python 3.11 or later and no package.

    module: dotted name of the one that is run. shared: of those of this project that it imports. files: others, by
    name, such as its settings; they are mounted in FILES_FOLDER itself.
    """

    module: str
    shared: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, str]:
        """Return all files by the key that they have in the ConfigMap."""
        return {**self.files, **{_key(module): _source(module) for module in (self.module, *self.shared)}}

    def checksum(self) -> Mapping[str, str]:
        """Return the pod annotation that has pods replaced when a file changes."""
        return files_checksum(self.data())

    def config_map(self, name: str, namespace: pulumi.Input[str], labels: Mapping[str, str] | None = None) -> Document:
        """Return the ConfigMap with the files."""
        return config_map(name, namespace, self.data(), labels)

    def volume(self, config_map: str) -> Volume:
        """Return the volume of that ConfigMap, with each module where Python looks for it."""
        items = [{"key": name, "path": name} for name in self.files]
        items += [{"key": _key(module), "path": _path(module)} for module in (self.module, *self.shared)]
        source = {"configMap": {"name": config_map, "items": items}}
        return Volume(name="program", path=FILES_FOLDER, source=source, read_only=True)

    def command(self, *arguments: str) -> list[str]:
        """Return what the container runs, with ENVIRONMENT."""
        return ["python", "-m", self.module, *arguments]


def _path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _key(module: str) -> str:
    return f"{module.rpartition('.')[2]}.py"


def _source(module: str) -> str:
    package, _, name = module.rpartition(".")
    return resources.files(package).joinpath(f"{name}.py").read_text()
