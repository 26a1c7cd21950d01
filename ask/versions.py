"""Whether the controllers of a replica decide as the cluster's do: those of another version may decide otherwise."""

from __future__ import annotations

import re
from typing import Final

from ask.content import CONTROLLERS, KUEUE, controllers
from ask.source import Source
from components import catalogue
from emulator.controllers import built, difference

_MINOR: Final = re.compile(r"v?(\d+\.\d+)\.")
_OPERATOR: Final = re.compile(r"rhods-operator\.((\d+\.\d+)\..+)")
INSTEAD: Final = "submit the job instead: what it waits for stands in its Workload (docs/members.md)"


class VersionError(Exception):
    """What is built here decides otherwise than the cluster's Kueue; the message says why, and what to do."""


def differences(source: Source) -> list[str]:
    """Return which of the replica's controllers are of another version than the cluster's, a line for each.

    Raises VersionError for a Kueue of another minor version, and for one of OpenShift AI's whose version is not known.
    """
    lines = []
    for deployment in controllers(source, CONTROLLERS):
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            here = built(container["image"])
            if here is None:
                continue
            there, said = here.release, here.release or "of a version that its image does not name"
            if here.of_openshift_ai:
                there, said = _of_openshift_ai(source, here.name)
            if here.name in KUEUE and there is not None and _minor(there) not in (None, _minor(here.version)):
                raise VersionError(
                    f"the cluster has Kueue {said}, and the one that is built here for it is {here.version}, which "
                    f"decides otherwise: {INSTEAD}"
                )
            if there != here.version:
                lines.append(difference(here, said))
    return list(dict.fromkeys(lines))


def _of_openshift_ai(source: Source, name: str) -> tuple[str | None, str]:
    """Return the version of a controller that OpenShift AI brings, as far as it is known, and how to call it.

    Its image names none. OLM has the Deployment of OpenShift AI's operator owned by what it installed
    (operator-lifecycle-manager, pkg/controller/install/deployment.go).
    """
    owners = [each for item in source.all("Deployment") for each in item["metadata"].get("ownerReferences") or ()]
    found = [_OPERATOR.fullmatch(each["name"]) for each in owners if each["kind"] == "ClusterServiceVersion"]
    releases = {each[2]: each[1] for each in found if each}
    if len(releases) != 1:
        raise VersionError(
            f"OpenShift AI brings the cluster's {name}, and not one ClusterServiceVersion rhods-operator owns a "
            f"Deployment there, but {len(releases)}, so that nobody knows in which version: {INSTEAD}"
        )
    ((minor, release),) = releases.items()
    called = f"of OpenShift AI {release}"
    if name not in KUEUE:
        return None, called
    kueue = next((each.kueue for each in catalogue.OPENSHIFT_AI if each.version == minor), None)
    if kueue is None:
        raise VersionError(f"the cluster has the Kueue {called}, and nobody has noted here which that is: {INSTEAD}")
    return kueue, f"{kueue} {called}"


def _minor(version: str) -> str | None:
    found = _MINOR.match(version)
    return found[1] if found else None
