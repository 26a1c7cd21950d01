"""Container images that the local kubelet can run, and their programs (`images.yaml`)."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

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


_TABLE: Final[Mapping[str, Mapping[str, Any]]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
_PROGRAMS: Final = {**_TABLE["programs"], **_TABLE["jobs"], **_TABLE["operator_hub"]}
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
    return _TABLE["upstream"].get(_name(reference))


def is_built_beside(reference: str) -> bool:
    """Tell whether a program of exactly the image's version can be built in addition to the default one."""
    return tag(reference) in _TABLE["beside"].get(_name(reference), ())


def of_openshift_ai(reference: str) -> str | None:
    """Return the upstream of a controller of jobs for one of OpenShift AI's images, None for any other image."""
    return _TABLE["openshift_ai"].get(_name(reference))


def known(reference: str) -> bool:
    """Tell whether the local kubelet has a program for an image."""
    name = _name(reference)
    return name == _PYTHON or name in _PROGRAMS


def makes_pods_of_jobs(reference: str) -> bool:
    """Tell whether an image is an operator of PyTorch's or Ray's kinds."""
    return _PROGRAMS.get(_name(reference)) in _TABLE["jobs"].values()


def of_operator_hub(reference: str) -> bool:
    """Tell whether an image belongs to OpenShift's operator hub or to an operator that it installs."""
    return _name(reference) in _TABLE["operator_hub"]


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
    binary = binaries_folder / _TABLE["beside"].get(name, {}).get(tag(reference), _PROGRAMS[name])
    if not os.access(binary, os.X_OK):
        raise UnknownImageError(f"the local kubelet has no {binary} for {reference}. Build the tools again")
    mirror = binaries_folder.parent / "mirror"
    read, written = (
        {path: str(mirror / folder) for path, folder in _TABLE[sort].get(name, {}).items()}
        for sort in ("read", "written")
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
