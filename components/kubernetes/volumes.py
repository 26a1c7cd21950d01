"""Volumes of pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pulumi

from components.kubernetes.manifests import Document


class AccessMode(StrEnum):
    """How many nodes may mount a volume at a time. Each node may mount it in any number of pods."""

    ONE_NODE = "ReadWriteOnce"
    MANY_NODES = "ReadWriteMany"


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume of a pod and its path in the container.

    source: the volume's source in the pod's specification.
    sub_path: a folder of the volume to mount instead of the whole volume.
    sub_path_variable: a variable of the container that contains the name of that folder, in the format of `env`. The
    kubelet creates the folder if it does not exist.
    """

    name: str
    path: str
    source: Mapping[str, Any]
    sub_path: str | None = None
    sub_path_variable: Mapping[str, Any] | None = None
    read_only: bool = False

    def mount(self) -> Document:
        """Return the container's volume mount."""
        mount: Document = {"name": self.name, "mountPath": self.path}
        if self.sub_path is not None:
            mount["subPath"] = self.sub_path
        if self.sub_path_variable is not None:
            mount["subPathExpr"] = f"$({self.sub_path_variable['name']})"
        if self.read_only:
            mount["readOnly"] = True
        return mount


def volumes(mounted: Sequence[Volume]) -> list[Document]:
    """Return a pod's `volumes`, each name once."""
    return [dict(document) for document in {item.name: {"name": item.name, **item.source} for item in mounted}.values()]


def environment(mounted: Sequence[Volume]) -> list[Document]:
    """Return the `env` entries that a container needs to mount these volumes."""
    return [dict(item.sub_path_variable) for item in mounted if item.sub_path_variable is not None]


def claim(name: str, claim_name: pulumi.Input[str], path: str, *, read_only: bool = False) -> Volume:
    """Return a volume of a PersistentVolumeClaim."""
    source = {"claimName": claim_name, **({"readOnly": True} if read_only else {})}
    return Volume(name=name, path=path, source={"persistentVolumeClaim": source}, read_only=read_only)


def host_folder(name: str, folder: str, path: str | None = None, *, read_only: bool = False) -> Volume:
    """Return a folder of the node, which must exist. path: in the container. The default is the same path."""
    source = {"hostPath": {"path": folder, "type": "Directory"}}
    return Volume(name=name, path=path or folder, source=source, read_only=read_only)
