"""Released versions that cannot be built here as they are, and what is built in their place.

Where the Go module of a release cannot be had, the version that `emulator/tools/core` pins plays the release: the
mirror renders the release's manifest from the built version's, with what upstream changed in it, and the local kubelet
runs the built program for the release's image. `make up` and `make status` say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from emulator.cluster import images
from emulator.toolchain import CORE, OPENDATAHUB_KUEUE, ToolchainError, pinned_version


@dataclass(frozen=True)
class StandIn:
    """A release and what plays it.

    name, version: of the release, as its file in the mirror is named. player: the version that plays it.
    lacks: what the release does and its player does not, as far as it changes what a user of the platform sees; empty
        of an older release.
    source: where upstream tells the two apart.
    carry: takes the player's rendered manifest to the release's.
    """

    name: str
    version: str
    player: str
    lacks: str
    source: str
    carry: Callable[[str], str]


def of(name: str, player: str) -> list[StandIn]:
    """Return the releases of an upstream that a version plays."""
    return [each for each in STAND_INS if (each.name, each.player) == (name, player)]


@dataclass(frozen=True)
class Player:
    """The program that stands for the image of a controller that decides about jobs.

    name: of its upstream. version: the one that is built here. release: the one that the image names, if it does.
    of_openshift_ai: the image is one of OpenShift AI's, whose tag is no version of upstream's.
    """

    name: str
    version: str
    release: str | None = None
    of_openshift_ai: bool = False


def player(reference: str) -> Player | None:
    """Return what stands for an image, None for one of no controller of a release."""
    name = images.manager(reference)
    if name is not None:
        return Player(name, pinned_version(CORE, MODULES[name]), images.tag(reference))
    name = images.of_openshift_ai(reference)
    if name is not None:
        return Player(name, pinned_version(OPENDATAHUB_KUEUE, MODULES[name]), of_openshift_ai=True)
    return None


def difference(player: Player, called: str) -> str:
    """Say that a program is not of the release, and what it lacks. called: the release, as people call it."""
    known = next((each for each in of(player.name, player.version) if each.version == player.release), None)
    rest = f"; what it lacks: {known.lacks}" if known and known.lacks else ""
    return f"{player.name} {called} is played by {player.version}, which can be built here{rest}"


def report(pods: Iterable[Mapping[str, Any]]) -> str:
    """Say where the programs of the running pods' images are not as released; nothing where all are."""
    references = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    lines = sorted(filter(None, map(_line, references)))
    return "\n".join(["Not as released", *(f"  {line}" for line in lines)]) if lines else ""


_SIMULATED: Final = {
    "autopilot": "is simulated: its pods measure nothing and mark no node; `kubectl label node` stands for its verdicts"
}
"""What only shows pods here, and would do something that a user of the platform looks for."""


def _line(reference: str) -> str | None:
    shown = next((name for name in _SIMULATED if f"/{name}/{name}:" in reference), None)
    if shown is not None:
        return f"{shown} {images.tag(reference)} {_SIMULATED[shown]}"
    found = player(reference)
    if found is None or found.of_openshift_ai:
        return None
    if found.release in (found.version, None):
        return _BUILT_OTHERWISE.get((found.name, found.version))
    return difference(found, str(found.release))


_LIMITED: Final = ("clusterqueues", "cohorts")
_LIMITS: Final = ("borrowingLimit", "lendingLimit")
_LIMIT: Final = "must be null if spec.cohort is empty", "must be null if spec.cohortName is empty"
_KUEUE_0_15_8: Final = (
    ("clusterqueues", "jsonPath: .spec.cohort\n", "jsonPath: .spec.cohortName\n"),
    *((kind, f"{limit} {_LIMIT[0]}", f"{limit} {_LIMIT[1]}") for kind in _LIMITED for limit in _LIMITS),
    ("workloads", "\n    - wl\n", "\n    - wl\n    - kwl\n    - kueueworkload\n"),
)
"""Where Kueue's definitions differ from v0.15.2: plural name; what the last of its API versions said, and says now."""


def _kueue_0_15_8(manifest: str) -> str:
    """Carry Kueue's manifest from v0.15.2: all that differs between what the two config/default render to."""
    documents = manifest.split("\n---\n")
    for plural, old, new in _KUEUE_0_15_8:
        index = _position(documents, f"\n  name: {plural}.kueue.x-k8s.io\n")
        before, found, after = documents[index].rpartition(old)
        if not found:
            raise ToolchainError(f"Kueue's definition of {plural} has nowhere {old.strip()!r}, which a release changes")
        documents[index] = before + new + after
    roles = [_position(documents, f"\n  name: kueue-jobset-{role}-role\n") for role in ("editor", "viewer")]
    added = [documents[index].replace("jobset", "leaderworkerset") for index in roles]
    documents[roles[-1] + 1 : roles[-1] + 1] = added
    return "\n---\n".join(documents)


def _position(documents: Sequence[str], line: str) -> int:
    """Return which document has a line; raises ToolchainError where none or several have it."""
    found = [index for index, text in enumerate(documents) if line in text]
    if len(found) != 1:
        raise ToolchainError(f"{len(found)} documents of the rendered manifest have the line {line.strip()!r}")
    return found[0]


MODULES: Final = {
    "kueue": "sigs.k8s.io/kueue",
    "appwrapper": "github.com/project-codeflare/appwrapper",
    "scheduler-plugins": "sigs.k8s.io/scheduler-plugins",
}
"""The Go module of each controller that the local kubelet runs, by its name."""

_BUILT_OTHERWISE: Final = {
    (
        "appwrapper",
        "v1.1.2",
    ): "appwrapper v1.1.2 is built here with a controller-runtime that does not limit its client; "
    "that of its image, v0.20.3, asks the API server at most 20 times a second",
}
"""What is built from a release's source and differs by its libraries, which all tools of the module share. Sources:
project-codeflare/appwrapper v1.1.2, go.mod; kubernetes-sigs/controller-runtime, pkg/client/config/config.go."""

_GENERATORS: Final = {"v0.33.5": "v0.17.3", "v0.31.8": "v0.16.5", "v0.29.7": "v0.14.0"}
"""What has written the definitions of older scheduler-plugins: all in which these differ from v0.34.7's."""
_GENERATOR: Final = "controller-gen.kubebuilder.io/version: "


def _generated_by(generator: str, manifest: str) -> str:
    """Carry a definition to a release that another version of controller-gen wrote it for."""
    before, found, after = manifest.partition(_GENERATOR)
    if not found:
        raise ToolchainError(f"a definition of scheduler-plugins has nowhere {_GENERATOR.strip()!r}")
    return f"{before}{found}{generator}\n{after.partition(chr(10))[2]}"


STAND_INS: Final = (
    StandIn(
        name="kueue",
        version="v0.15.8",
        player="v0.15.2",
        lacks="owners get GPUs back while they borrow (v0.15.6), preemption never gets stuck (v0.15.8)",
        source="kubernetes-sigs/kueue, CHANGELOG/CHANGELOG-0.15.md",
        carry=_kueue_0_15_8,
    ),
    *(
        StandIn(
            name=name,
            version=version,
            player="v0.34.7",
            lacks="",
            source=f"kubernetes-sigs/scheduler-plugins {version}, config/crd/bases",
            carry=partial(_generated_by, generator),
        )
        for version, generator in _GENERATORS.items()
        for name in ("scheduler-plugins", "scheduler-plugins-elasticquotas")
    ),
)
