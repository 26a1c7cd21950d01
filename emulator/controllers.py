"""Which version of a controller the local environment runs for an image, and how that differs from what the image says.

`make up` and `make status` report it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from emulator.cluster import images
from emulator.toolchain import CORE, KUBERNETES_1_34, KUEUE, OPENDATAHUB_KUEUE, Module, pinned_version

MODULES: Final[Mapping[str, tuple[Module, str]]] = {
    "kueue": (KUEUE, "sigs.k8s.io/kueue"),
    "appwrapper": (CORE, "github.com/project-codeflare/appwrapper"),
    "scheduler-plugins": (KUBERNETES_1_34, "sigs.k8s.io/scheduler-plugins"),
}
"""Of each controller that decides about jobs: the tools that it is built with, and its Go module."""


@dataclass(frozen=True)
class Controller:
    """A controller that decides about jobs, as it is built here.

    name: of its upstream. version: that is built here. release: that the image names, if it does.
    of_openshift_ai: the image is one of OpenShift AI's, whose tag is no version of upstream's.
    """

    name: str
    version: str
    release: str | None = None
    of_openshift_ai: bool = False


def built(reference: str) -> Controller | None:
    """Return the controller that runs here for an image, None for an image of no such controller."""
    name = images.manager(reference)
    if name is not None:
        release = images.tag(reference)
        version = release if release and images.is_built_beside(reference) else pinned_version(*MODULES[name])
        return Controller(name, version, release)
    name = images.of_openshift_ai(reference)
    if name is not None:
        return Controller(name, pinned_version(OPENDATAHUB_KUEUE, MODULES[name][1]), of_openshift_ai=True)
    return None


def difference(controller: Controller, called: str) -> str:
    """Say that the program is of another version than the image. called: the image's version, as people call it."""
    return f"{controller.name} {called} runs here as {controller.version}"


def report(pods: Iterable[Mapping[str, Any]]) -> str:
    """Say which running pods have a program of another version than their image; return "" where none has."""
    references = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    lines = sorted(filter(None, map(_line, references)))
    return "\n".join(["Not as released", *(f"  {line}" for line in lines)]) if lines else ""


_SIMULATED: Final = {
    "autopilot": "is simulated: its pods measure nothing and mark no node; `kubectl label node` stands for its verdicts"
}
"""Images without a program here, whose work a user of the platform looks for."""


def _line(reference: str) -> str | None:
    shown = next((name for name in _SIMULATED if f"/{name}/{name}:" in reference), None)
    if shown is not None:
        return f"{shown} {images.tag(reference)} {_SIMULATED[shown]}"
    found = built(reference)
    if found is None or found.of_openshift_ai or found.release in (found.version, None):
        return None
    return difference(found, str(found.release))
