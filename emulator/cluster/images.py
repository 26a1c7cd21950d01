"""Container images that the local kubelet can run, and their programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulator.cluster.api import Object
from emulator.cluster.errors import UnknownImageError

_PROGRAM_FOLDER = "/image/bin"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """The program for an image on this machine.

    files:      path in the container -> file or folder of this machine, mounted read-only.
    links:      path in the container -> target of a symbolic link.
    entrypoint: command of a container without its own command.
    path:       the image's PATH.
    copies:     like files, but each container gets its own writable copy.
    """

    files: Mapping[str, str]
    links: Mapping[str, str]
    entrypoint: tuple[str, ...]
    path: str
    copies: Mapping[str, str] = field(default_factory=dict)


_MANAGERS = {"kueue/kueue": "kueue", "ibm/appwrapper": "appwrapper"}
_SCHEDULING = {
    "scheduler-plugins/kube-scheduler": "scheduler-plugins-scheduler",
    "scheduler-plugins/controller": "scheduler-plugins-controller",
}
_JOBS = {
    "jobset/jobset": "jobset",
    "kuberay/operator": "kuberay-operator",
    "trainer/trainer-controller-manager": "trainer",
    "training-v1/training-operator": "training-operator",
}
_OPERATOR_HUB = {
    "operator-framework/olm-operator": "olm-operator",
    "operator-framework/catalog-operator": "catalog-operator",
    "operator-framework/opm": "opm",
    "rhoai/odh-rhel8-operator": "opendatahub-operator",
    "rhoai/odh-kueue-controller-rhel8": "opendatahub-kueue",
    "rhoai/odh-codeflare-operator-rhel8": "opendatahub-appwrapper",
    "rhoai/odh-kuberay-operator-controller-rhel8": "kuberay-operator",
    "rhoai/odh-training-operator-rhel8": "training-operator",
}
_OF_OPENSHIFT_AI = {
    "rhoai/odh-kueue-controller-rhel8": "kueue",
    "rhoai/odh-codeflare-operator-rhel8": "appwrapper",
}
_RELEASED = {**_MANAGERS, "scheduler-plugins/kube-scheduler": "scheduler-plugins"}
_BESIDE = {
    ("kueue/kueue", "v0.18.4"): "kueue-v0.18.4",
    ("kueue/kueue", "v0.15.2"): "kueue-v0.15.2",
    ("ibm/appwrapper", "v1.1.2"): "appwrapper-v1.1.2",
}
"""Programs of other than the default versions, by repository and tag. They are built for tests of these versions."""
_PROGRAMS = {**_MANAGERS, **_SCHEDULING, **_JOBS, **_OPERATOR_HUB}
_READ = {
    "operator-framework/opm": {"/configs": "operator-hub/catalog", "/certified": "operator-hub/certified"},
}
_WRITTEN = {"rhoai/odh-rhel8-operator": {"/opt/manifests": "operator-hub/manifests"}}
"""Folders of the mirror that appear in an image, by path. Those of `_WRITTEN` are writable."""
_PYTHON = "library/python"


def binaries() -> tuple[str, ...]:
    """Return the names of the binaries that run for images."""
    return tuple(_PROGRAMS.values())


def repository(reference: str) -> str:
    """Return the repository of an image reference without registry, tag and digest: `kueue/kueue`.

    A reference without a registry means Docker Hub, where official images are in `library/` (distribution/reference).
    """
    name = reference.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    name = head + slash + tail.partition(":")[0]
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    return name if "/" in name else f"library/{name}"


def tag(reference: str) -> str | None:
    """Return the tag of an image reference, None without one."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[2] or None


def manager(reference: str) -> str | None:
    """Return the upstream of a controller of jobs for one of upstream's own images, None for any other image."""
    return _RELEASED.get(_name(reference))


def is_built_beside(reference: str) -> bool:
    """Tell whether a program of exactly the image's version can be built in addition to the default one."""
    return (_name(reference), tag(reference)) in _BESIDE


def of_openshift_ai(reference: str) -> str | None:
    """Return the upstream of a controller of jobs for one of OpenShift AI's images, None for any other image."""
    return _OF_OPENSHIFT_AI.get(_name(reference))


def known(reference: str) -> bool:
    """Tell whether the local kubelet has a program for an image."""
    name = _name(reference)
    return name == _PYTHON or name in _PROGRAMS


def makes_pods_of_jobs(reference: str) -> bool:
    """Tell whether an image is an operator of PyTorch's or Ray's kinds."""
    return _PROGRAMS.get(_name(reference)) in _JOBS.values()


def of_operator_hub(reference: str) -> bool:
    """Tell whether an image belongs to OpenShift's operator hub or to an operator that it installs."""
    return _name(reference) in _OPERATOR_HUB


def why_simulated(pod: Object) -> str:
    """Return why a pod is simulated, empty if all its images have programs here."""
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    unknown = dict.fromkeys(item["image"] for item in containers if not known(item["image"]))
    return f"this machine has no program for {', '.join(unknown)}" if unknown else ""


def _name(reference: str) -> str:
    """Return the last two parts of the repository, without the prefix of a mirror."""
    return "/".join(repository(reference).split("/")[-2:])


def resolve(reference: str, binaries_folder: Path) -> Image:
    """Return the program for an image.

    Raises UnknownImageError if the image is unknown, or its binary is not in `binaries_folder`.
    """
    name = _name(reference)
    if name == _PYTHON:
        return _python()
    if name not in _PROGRAMS:
        raise UnknownImageError(f"this machine has no program for the image {reference}")
    binary = binaries_folder / _BESIDE.get((name, tag(reference) or ""), _PROGRAMS[name])
    if not os.access(binary, os.X_OK):
        raise UnknownImageError(f"the local kubelet has no {binary} for {reference}. Build the tools again")
    mirror = binaries_folder.parent / "mirror"
    read, written = (
        {path: str(mirror / folder) for path, folder in content.get(name, {}).items()} for content in (_READ, _WRITTEN)
    )
    return Image({"/manager": str(binary.resolve()), **read}, {}, ("/manager",), _SYSTEM_PATH, written)


def _python() -> Image:
    """Return this interpreter with its standard library, without packages of a virtual environment."""
    prefix = sys.base_prefix
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = os.path.realpath(sys.executable)
    links = {f"{_PROGRAM_FOLDER}/{name}": program for name in ("python", "python3", version)}
    # Every container has the system's interpreter, because /usr is bound into it.
    files = {} if prefix in ("/usr", "/usr/local") else {prefix: prefix}
    return Image(files, links, (f"{_PROGRAM_FOLDER}/python3",), f"{_PROGRAM_FOLDER}:{_SYSTEM_PATH}")
