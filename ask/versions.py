"""Compare the versions of a replica's controllers with the cluster's. Another version may decide differently."""

import re
from typing import Final

from ask.content import CONTROLLERS, KUEUE, controllers
from ask.source import Source
from components import catalogue
from emulator.controllers import built, difference

_MINOR: Final = re.compile(r"v?(\d+\.\d+)\.")
_OPERATOR: Final = re.compile(r"rhods-operator\.((\d+\.\d+)\..+)")
INSTEAD: Final = "submit the job instead: its Workload shows what it waits for (docs/members.md)"


class VersionError(Exception):
    """The Kueue that is built here decides differently from the cluster's. The message gives the reason and the fix."""


def differences(source: Source) -> list[str]:
    """Return the controllers of the replica that have another version than the cluster's, one line each.

    Raises VersionError for another minor version of Kueue, and for an OpenShift AI whose Kueue version is unknown.
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
                    f"the cluster has Kueue {said}, but this machine can predict only the answers of Kueue "
                    f"{here.version}, which may differ: {INSTEAD}"
                )
            if there != here.version:
                lines.append(difference(here, said))
    return list(dict.fromkeys(lines))


def _of_openshift_ai(source: Source, name: str) -> tuple[str | None, str]:
    """Return the version of a controller that OpenShift AI brings, None if unknown, and its name for messages.

    Its image does not name a version. In OLM, the operator that was installed owns the Deployment of OpenShift AI's
    operator (operator-lifecycle-manager, pkg/controller/install/deployment.go).
    """
    owners = [each for item in source.all("Deployment") for each in item["metadata"].get("ownerReferences") or ()]
    found = [_OPERATOR.fullmatch(each["name"]) for each in owners if each["kind"] == "ClusterServiceVersion"]
    releases = {each[2]: each[1] for each in found if each}
    if len(releases) != 1:
        raise VersionError(
            f"OpenShift AI brings the cluster's {name} in an unknown version: one ClusterServiceVersion "
            f"rhods-operator must own a Deployment there, and {len(releases)} do: {INSTEAD}"
        )
    ((minor, release),) = releases.items()
    called = f"of OpenShift AI {release}"
    if name not in KUEUE:
        return None, called
    kueue = next((each.kueue for each in catalogue.OPENSHIFT_AI if each.version == minor), None)
    if kueue is None:
        raise VersionError(f"the cluster has the Kueue {called}, whose version is not known here: {INSTEAD}")
    return kueue, f"{kueue} {called}"


def _minor(version: str) -> str | None:
    found = _MINOR.match(version)
    return found[1] if found else None
