"""Programs of this project that run in pods, mounted from a ConfigMap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import config_map, files_checksum
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY
from components.kubernetes.volumes import Volume

FILES_FOLDER: Final = "/etc/mlbatch"
"""Where pods mount the files. Jobs use the same folder."""

API_CLIENT: Final = "components.kubernetes.in_cluster"
"""The programs' module for requests to the API server."""

ENVIRONMENT: Final = (
    {"name": "PYTHONPATH", "value": FILES_FOLDER},
    {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
)
"""Variables of containers that run such a program."""
OWN_NODE: Final = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
"""Variable of programs that act on the node of their pod."""
OWN_POD: Final = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
"""Variable of programs that use the uid of their pod."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A Python module and its files. Its image needs Python 3.11 or later and no packages.

    module: dotted name of the module that runs.
    shared: dotted names of modules of this project that it imports.
    files: other files by name, such as its settings. They are mounted in FILES_FOLDER.
    """

    module: str
    shared: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, str]:
        """Return all files by their key in the ConfigMap."""
        return {**self.files, **{_key(module): _source(module) for module in (self.module, *self.shared)}}

    def checksum(self) -> Mapping[str, str]:
        """Return the pod annotation that replaces pods when a file changes."""
        return files_checksum(self.data())

    def config_map(self, name: str, namespace: pulumi.Input[str], labels: Mapping[str, str] | None = None) -> Document:
        """Return the ConfigMap with the files."""
        return config_map(name, namespace, self.data(), labels)

    def volume(self, config_map: str) -> Volume:
        """Return the volume of that ConfigMap, with each module at the path where Python finds it."""
        items = [{"key": name, "path": name} for name in self.files]
        items += [
            {"key": _key(module), "path": f"{module.replace('.', '/')}.py"} for module in (self.module, *self.shared)
        ]
        source = {"configMap": {"name": config_map, "items": items}}
        return Volume(name="program", path=FILES_FOLDER, source=source, read_only=True)

    def command(self, *arguments: str) -> list[str]:
        """Return the container's command. It needs ENVIRONMENT."""
        return ["python", "-m", self.module, *arguments]

    def container(
        self,
        name: str,
        image: str,
        arguments: Sequence[str],
        resources: Resources,
        mounted: Sequence[Volume],
        variables: Sequence[Document] = (),
    ) -> Document:
        """Return a container that runs it, without rights on its node. mounted: `volume`, and other volumes."""
        return {
            "name": name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": self.command(*arguments),
            "env": [*variables, *ENVIRONMENT],
            "resources": resources.body(),
            "securityContext": dict(READ_ONLY),
            "volumeMounts": [volume.mount() for volume in mounted],
        }


def _key(module: str) -> str:
    return f"{module.rpartition('.')[2]}.py"


def _source(module: str) -> str:
    package, _, name = module.rpartition(".")
    return resources.files(package).joinpath(f"{name}.py").read_text()
