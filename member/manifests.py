"""The object that submits a file's job: an AppWrapper with everything in the file, or a TrainJob beside its files."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ask.manifest import Job, ManifestError, check
from components import names
from components.job_kinds import APPWRAPPER, JOB, POD_GROUP, RAY_JOB, RUN, TRAIN_JOB
from member.session import FILES_OF

Document = dict[str, Any]

ALONE: Final = (APPWRAPPER.kind, TRAIN_JOB.kind)
"""Kinds that are submitted as they are. AppWrapper 1.2.2 cannot contain TrainJobs."""
_WRAPPED: Final = [kind.kind for kind in RUN if kind is not RAY_JOB]
WARM_UP: Final = {"workload.codeflare.dev.appwrapper/warmupGracePeriodDuration": "30m"}
"""By default AppWrapper takes pods that do not run after five minutes as lost. Pulling images of 20 GB takes longer."""
_GROUP_LABEL: Final = f"{POD_GROUP.group}/pod-group"
_OF_KUEUE: Final = f"{names.KUEUE_GROUP}/"
"""Prefix of labels that only the AppWrapper may have, because Kueue queues it and not its parts."""


def job_of(objects: Sequence[Document], team: str, queue: str, *, pod_groups: bool) -> Job:
    """Return the job of objects, in a team's namespace and queue. Raises ManifestError.

    queue: for objects that name none.
    pod_groups: the cluster binds the pods of a PodGroup together. Each wrapped Job gets one, unless they have one.
    """
    alone = [each for each in objects if each.get("kind") in ALONE]
    if alone and len(objects) - len(_files(objects)) > 1:
        raise ManifestError(
            f"the file has other objects beside the {alone[0]['kind']}: create them first with kubectl, or wrap them"
        )
    if alone:
        document = alone[0]
    elif any(each.get("kind") == RAY_JOB.kind for each in objects):
        raise ManifestError(
            "AppWrapper does not see when a RayJob ends: use a RayCluster (docs/members.md), or kubectl if the "
            "platform has `tenancy.unwrappedRay`"
        )
    else:
        runs = [each for each in objects if each.get("kind") in _WRAPPED]
        if not runs:
            kinds = ", ".join(str(each.get("kind")) for each in objects) or "nothing"
            raise ManifestError(f"the file has no job ({kinds}): use {', '.join([*ALONE, *_WRAPPED])}")
        if any(each.get("kind") == "Secret" for each in objects):
            raise ManifestError(
                "the file has a Secret, which everyone who can read AppWrappers could read: create it with kubectl "
                "before the job, and remove it from the file"
            )
        document = wrapped(objects, runs[0], pod_groups=pod_groups)
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("labels") or {}, dict):
        return check(document, team)
    labels = {names.QUEUE_LABEL: queue, **(metadata.get("labels") or {})}
    return check({**document, "metadata": {**metadata, "labels": labels}}, team)


def files(objects: Sequence[Document], job: str) -> list[Document]:
    """Return the ConfigMaps beside a TrainJob of this name, labelled with it. No object can contain both.

    Raises ManifestError if one has no name.
    """
    found = _files(objects)
    for each in found:
        if not isinstance(each.get("metadata"), dict) or not each["metadata"].get("name"):
            raise ManifestError("a ConfigMap of the file has no metadata.name: give it one")
    return [
        {**each, "metadata": {**each["metadata"], "labels": {**(each["metadata"].get("labels") or {}), FILES_OF: job}}}
        for each in found
    ]


def _files(objects: Sequence[Document]) -> list[Document]:
    trains = any(each.get("kind") == TRAIN_JOB.kind for each in objects)
    return [each for each in objects if trains and each.get("kind") == "ConfigMap"]


def wrapped(objects: Sequence[Mapping[str, Any]], job: Mapping[str, Any], *, pod_groups: bool) -> Document:
    """Return the AppWrapper of objects, with the name, the namespace and the queue of one of them."""
    metadata = job.get("metadata")
    own = metadata if isinstance(metadata, Mapping) else {}
    labels = own.get("labels")
    moved = (
        {key: value for key, value in labels.items() if key.startswith(_OF_KUEUE)}
        if isinstance(labels, Mapping)
        else {}
    )
    grouped = pod_groups and not any(each.get("kind") == POD_GROUP.kind for each in objects)
    components = [part for each in objects for part in (_grouped(each) if grouped else [each])]
    return {
        "apiVersion": APPWRAPPER.api,
        "kind": APPWRAPPER.kind,
        "metadata": {
            **{key: own[key] for key in ("name", "namespace") if key in own},
            **({"labels": moved} if moved else {}),
            "annotations": WARM_UP,
        },
        "spec": {"components": [{"template": _without_labels(each)} for each in components]},
    }


def _without_labels(item: Mapping[str, Any]) -> Document:
    """Return an object without the labels of the AppWrapper."""
    metadata = item.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("labels"), Mapping):
        return dict(item)
    labels = {key: value for key, value in metadata["labels"].items() if not key.startswith(_OF_KUEUE)}
    return {**item, "metadata": {**metadata, "labels": labels}}


def _grouped(item: Mapping[str, Any]) -> list[Document]:
    """Return a Job with the PodGroup of all its pods, and any other object alone.

    As in `components/scheduling/pod_group.py`. An invalid Job stays as it is, and the API server names the problem.
    """
    try:
        name, spec = item["metadata"]["name"], item["spec"]
        template, parallel = spec["template"], spec.get("parallelism")
        pods = 1 if parallel is None else min(parallel, spec.get("completions") or parallel)
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), _GROUP_LABEL: name}
    except (AttributeError, KeyError, TypeError):
        return [dict(item)]
    if item.get("kind") != JOB.kind:
        return [dict(item)]
    group = {
        "apiVersion": POD_GROUP.api,
        "kind": POD_GROUP.kind,
        "metadata": {"name": name},
        "spec": {"minMember": pods},
    }
    return [group, {**item, "spec": {**spec, "template": {**template, "metadata": {**metadata, "labels": labels}}}}]
