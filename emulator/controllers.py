"""Versions of the controllers that run locally, compared with their images, for `make up` and `make status`."""

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
"""The tools and the Go module of each controller of jobs."""


@dataclass(frozen=True)
class Controller:
    """A controller of jobs that is built here.

    name: of its upstream.
    version: built here.
    release: the image's version, None if unknown.
    of_openshift_ai: the image is from OpenShift AI, whose tag is not an upstream version.
    """

    name: str
    version: str
    release: str | None = None
    of_openshift_ai: bool = False


def built(reference: str) -> Controller | None:
    """Return the controller that runs here for an image, None for other images."""
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
    """Return a sentence that the program has another version than the image. called: the image's version for users."""
    return f"{controller.name} {called} runs here as {controller.version}"


def report(pods: Iterable[Mapping[str, Any]]) -> str:
    """Return a report of running pods whose program has another version than their image, "" without any."""
    references = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    lines = sorted(filter(None, map(_line, references)))
    return "\n".join(["Not as released", *(f"  {line}" for line in lines)]) if lines else ""


_SIMULATED: Final = {
    "autopilot": "is simulated: its pods do not measure or label nodes. Set its results with `kubectl label node`"
}
"""Images without a program here, whose results users look for."""


def _line(reference: str) -> str | None:
    shown = next((name for name in _SIMULATED if f"/{name}/{name}:" in reference), None)
    if shown is not None:
        return f"{shown} {images.tag(reference)} {_SIMULATED[shown]}"
    found = built(reference)
    if found is None or found.of_openshift_ai or found.release in (found.version, None):
        return None
    return difference(found, str(found.release))
