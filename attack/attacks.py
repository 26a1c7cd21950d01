"""The list of attacks (`attacks.yaml`, `jobs.yaml`)."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import yaml

Document = dict[str, Any]

_RESOURCES: Document = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
_NAMES = {"containers": "main", "initContainers": "init"}
_WRAPPER: Final = "AppWrapper"
_QUEUED: Final = {"name": "attack", "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}}
_LARGE: Final = "<" * 12_000
"""70 KiB as JSON, which has six bytes for this character."""
_WRAPPED: Final = "wrapped"
_ALONE: Final = "alone"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack of a member.

    name: unique. gains: what the member would get. refusal: a part of the platform's answer. Alternatives are separated
    by `|`. pod: the pod of the attack, which a member creates in any way that works. object: the object that a member
    creates, without a pod. counted: the attack also fails if the pod gets requests.
    """

    name: str
    gains: str
    refusal: str
    pod: Document | None = None
    object: Document | None = None
    counted: bool = False


def attacks() -> list[Attack]:
    """Return all attacks, in the order of the files."""
    groups, jobs = _read("attacks.yaml"), _read("jobs.yaml")
    return [
        *(each for group in groups for each in _of(group)),
        *(each for group in jobs["attacks"] for job in group["jobs"] for each in _of_job(job, jobs["bases"], group)),
    ]


def valid_jobs() -> list[Document]:
    """Return valid jobs of a member, which attacks change: alone and in an AppWrapper."""
    bases = _read("jobs.yaml")["bases"]
    wrapper = bases[_WRAPPER]["object"]
    kinds = [base for kind, base in bases.items() if kind != _WRAPPER]
    return [
        wrapper,
        *(_beside(wrapper, base["object"]) for base in kinds if _WRAPPED in base.get("ways", _WRAPPED)),
        *(_alone(base) for base in kinds if _ALONE in base),
    ]


def pod(spec: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> Document:
    """Return a small pod with changes. Adds name, image and resources to containers that lack them."""
    found: Document = {"restartPolicy": "Never", "containers": [{}], **copy.deepcopy(dict(spec))}
    for kind, name in _NAMES.items():
        if kind in found:
            own = {"name": name, "image": "docker.io/library/busybox:1.37.0", "resources": copy.deepcopy(_RESOURCES)}
            found[kind] = [{**own, **container} for container in found[kind]]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attack", **(metadata or {})}, "spec": found}


def _read(file: str) -> Any:
    return yaml.safe_load(resources.files("attack").joinpath(file).read_text().replace("{large}", _LARGE))


def _of(group: Mapping[str, Any]) -> Iterator[Attack]:
    for each in group.get("pods") or ():
        made = pod(each.get("spec") or {}, each.get("metadata"))
        counted = each.get("counted", False)
        yield Attack(name=each["name"], gains=group["gains"], refusal=each["refusal"], pod=made, counted=counted)
    for each in group.get("objects") or ():
        yield Attack(name=each["name"], gains=group["gains"], refusal=each["refusal"], object=each["object"])


def _of_job(entry: Mapping[str, Any], bases: Mapping[str, Any], group: Mapping[str, Any]) -> Iterator[Attack]:
    (what,) = entry.keys() - {"name", "refusal", "ways"}
    change, wrapper = entry[what], bases[_WRAPPER]["object"]
    if what == "trainPods":
        what, change = "TrainJob", _train_pods(change)
    if what in bases:
        base = bases[what]
        changed = {
            _WRAPPED: _beside(wrapper, _merged(base["object"], change)),
            **({_ALONE: _merged(_alone(base), change)} if _ALONE in base else {}),
        }
        ways = entry.get("ways") or base.get("ways") or changed
        made = {f"{entry['name']}, {way}": changed[way] for way in ways}
    elif what == "beside":
        made = {entry["name"]: _beside(wrapper, change)}
    else:
        made = {entry["name"]: _merged(wrapper, _at(what, change))}
    for name, document in made.items():
        yield Attack(name=name, gains=group["gains"], refusal=entry["refusal"], object=document)


def _at(what: str, change: Document) -> Document:
    """Return the patch of an AppWrapper for a patch of one component."""
    if what == "wrapper":
        return change
    if what == "pods":
        change = {"spec": {"template": change}}
    return {"spec": {"components": [change if what == "component" else {"template": change}]}}


def _train_pods(change: Document) -> Document:
    """Return the patch of a TrainJob for a patch of its pods."""
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": change}}}}]
    patch = {"manager": "example.org/me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    return {"spec": {"runtimePatches": [patch]}}


def _beside(wrapper: Document, item: Document) -> Document:
    """Return an AppWrapper with one more object."""
    found = copy.deepcopy(wrapper)
    named = {**item, "metadata": {"name": "beside", **item.get("metadata", {})}}
    found["spec"]["components"].append({"template": copy.deepcopy(named)})
    return found


def _alone(base: Mapping[str, Document]) -> Document:
    return _merged({**base["object"], "metadata": _QUEUED}, base[_ALONE])


def _merged(base: Document, change: Document) -> Document:
    """Return an object changed by a merge patch, which merges lists of objects one by one."""
    kept = {key: copy.deepcopy(value) for key, value in base.items() if change.get(key, value) is not None}
    return kept | {key: _changed(base.get(key), value) for key, value in change.items() if value is not None}


def _changed(base: Any, change: Any) -> Any:
    if isinstance(base, dict) and isinstance(change, dict):
        return _merged(base, change)
    if isinstance(base, list) and isinstance(change, list) and all(isinstance(each, dict) for each in (*base, *change)):
        common = [_merged(*pair) for pair in zip(base, change, strict=False)]
        return common + copy.deepcopy(change[len(base) :] or base[len(change) :])
    return copy.deepcopy(change)
