"""The list of attacks (`attacks.yaml`)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

Document = dict[str, Any]

_RESOURCES: Document = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
_NAMES = {"containers": "main", "initContainers": "init"}


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One thing that a member tries.

    name: unique. gains: what it is good for. refusal: a part of what the platform answers.
    pod: the pod that it is about, which a member creates in any way that works; else object, which a member creates.
    counted: it fails, too, where the pod is given requests.
    """

    name: str
    gains: str
    refusal: str
    pod: Document | None = None
    object: Document | None = None
    counted: bool = False


def attacks() -> list[Attack]:
    """Return all of them, in the order of the file."""
    groups = yaml.safe_load(resources.files("attack").joinpath("attacks.yaml").read_text())
    return [each for group in groups for each in _of(group)]


def pod(spec: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> Document:
    """Return a small pod, changed. A container gets a name, an image and resources where it has none."""
    found: Document = {"restartPolicy": "Never", "containers": [{}], **copy.deepcopy(dict(spec))}
    for kind, name in _NAMES.items():
        if kind in found:
            own = {"name": name, "image": "docker.io/library/busybox:1.37.0", "resources": copy.deepcopy(_RESOURCES)}
            found[kind] = [{**own, **container} for container in found[kind]]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attack", **(metadata or {})}, "spec": found}


def _of(group: Mapping[str, Any]) -> Iterator[Attack]:
    for each in group.get("pods") or ():
        made = pod(each.get("spec") or {}, each.get("metadata"))
        counted = each.get("counted", False)
        yield Attack(name=each["name"], gains=group["gains"], refusal=each["refusal"], pod=made, counted=counted)
    for each in group.get("objects") or ():
        yield Attack(name=each["name"], gains=group["gains"], refusal=each["refusal"], object=each["object"])
