"""Which container images the local kubelet can run, and as what."""

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
    """What stands for an image on this machine.

    files:      path in the container -> file or folder of this machine that appears there, read-only.
    links:      path in the container -> target of a symbolic link.
    entrypoint: what runs when the container has no command of its own.
    path:       the image's PATH.
    copies:     as files, but that the container may write to its own.
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
"""Programs of other versions than the default ones, by repository and tag: built for the tests of those versions."""
_PROGRAMS = {**_MANAGERS, **_SCHEDULING, **_JOBS, **_OPERATOR_HUB}
_READ = {
    "operator-framework/opm": {"/configs": "operator-hub/catalog", "/certified": "operator-hub/certified"},
}
_WRITTEN = {"rhoai/odh-rhel8-operator": {"/opt/manifests": "operator-hub/manifests"}}
"""Folders of the mirror that are in an image, by where; the second may be written to."""
_PYTHON = "library/python"


def binaries() -> tuple[str, ...]:
    """Return the names of the binaries that stand for images."""
    return tuple(_PROGRAMS.values())


def repository(reference: str) -> str:
    """Return the repository of an image reference without registry, tag and digest: `kueue/kueue`.

    A reference without a registry means Docker Hub, whose official images live in `library/` (distribution/reference).
    """
    name = reference.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    name = head + slash + tail.partition(":")[0]
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    return name if "/" in name else f"library/{name}"


def tag(reference: str) -> str | None:
    """Return the tag of an image reference, None where it has none."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[2] or None


def manager(reference: str) -> str | None:
    """Return the upstream of a controller that decides about jobs in an image of upstream's, None for any other."""
    return _RELEASED.get(_name(reference))


def is_built_beside(reference: str) -> bool:
    """Tell whether a program of exactly the image's version can be built beside the default one."""
    return (_name(reference), tag(reference)) in _BESIDE


def of_openshift_ai(reference: str) -> str | None:
    """Return the upstream of a controller that decides about jobs in an image of OpenShift AI, None for any other."""
    return _OF_OPENSHIFT_AI.get(_name(reference))


def known(reference: str) -> bool:
    """Tell whether a program stands for an image."""
    name = _name(reference)
    return name == _PYTHON or name in _PROGRAMS


def makes_pods_of_jobs(reference: str) -> bool:
    """Tell whether an image is an operator of PyTorch's or Ray's kinds."""
    return _PROGRAMS.get(_name(reference)) in _JOBS.values()


def of_operator_hub(reference: str) -> bool:
    """Tell whether an image is one of OpenShift's operator hub, or of what its operators install."""
    return _name(reference) in _OPERATOR_HUB


def why_simulated(pod: Object) -> str:
    """Say why a pod cannot run, nothing for one whose every image a program of this machine stands for."""
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    unknown = dict.fromkeys(item["image"] for item in containers if not known(item["image"]))
    return f"no program of this machine stands for {', '.join(unknown)}" if unknown else ""


def _name(reference: str) -> str:
    """Return the last two parts of the repository: a mirror's prefix does not matter."""
    return "/".join(repository(reference).split("/")[-2:])


def resolve(reference: str, binaries_folder: Path) -> Image:
    """Return the program that stands for an image.

    Raises UnknownImageError when the image is not known, or its binary is not in `binaries_folder`.
    """
    name = _name(reference)
    if name == _PYTHON:
        return _python()
    if name not in _PROGRAMS:
        raise UnknownImageError(f"no program of this machine stands for the image {reference}")
    binary = binaries_folder / _BESIDE.get((name, tag(reference) or ""), _PROGRAMS[name])
    if not os.access(binary, os.X_OK):
        raise UnknownImageError(f"the local kubelet has no {binary} to run {reference} with: build the tools again")
    mirror = binaries_folder.parent / "mirror"
    read, written = (
        {path: str(mirror / folder) for path, folder in content.get(name, {}).items()} for content in (_READ, _WRITTEN)
    )
    return Image({"/manager": str(binary.resolve()), **read}, {}, ("/manager",), _SYSTEM_PATH, written)


def _python() -> Image:
    """Return this interpreter, with its standard library and without the packages of a virtual environment."""
    prefix = sys.base_prefix
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = os.path.realpath(sys.executable)
    links = {f"{_PROGRAM_FOLDER}/{name}": program for name in ("python", "python3", version)}
    # An interpreter of the system is already there, since /usr is bound into every container.
    files = {} if prefix in ("/usr", "/usr/local") else {prefix: prefix}
    return Image(files, links, (f"{_PROGRAM_FOLDER}/python3",), f"{_PROGRAM_FOLDER}:{_SYSTEM_PATH}")
