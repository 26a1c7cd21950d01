"""The objects that an AppWrapper creates after admission, and its complete pods.

Kueue counts a copy of the pods without the fields that queues do not use, such as volumes and the host's network
(AppWrapper v1.2.2, `pkg/utils/utils.go`, GetPodTemplateSpec).
"""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
"""A step of a path such as template.spec.workerGroupSpecs[0].template (ibid., getValueAtPath)."""
LABEL: Final = "workload.codeflare.dev/appwrapper"
"""Label of an AppWrapper's objects and pods that contains its name."""

Document = dict[str, Any]


def templates(wrapper: Mapping[str, Any]) -> list[Document]:
    """Return an AppWrapper's pod templates from the paths that AppWrapper has noted. Empty before it has noted them."""
    return [
        _at(component, pods["path"])
        for component, status in zip(wrapper["spec"]["components"], _noted(wrapper), strict=False)
        for pods in status.get("podSets") or ()
    ]


def parts(wrapper: Mapping[str, Any]) -> list[Document]:
    """Return the objects that an AppWrapper creates. Empty before it has noted their pods.

    It labels them and their pods with its name, and owns them (AppWrapper v1.2.2, `resource_management.go`,
    createComponent).
    """
    name, namespace = wrapper["metadata"]["name"], wrapper["metadata"]["namespace"]
    owner = {"apiVersion": wrapper["apiVersion"], "kind": wrapper["kind"], "name": name, "controller": True}
    owner |= {"uid": wrapper["metadata"]["uid"], "blockOwnerDeletion": True}
    found = []
    for component, status in zip(wrapper["spec"]["components"], _noted(wrapper), strict=False):
        own = copy.deepcopy(dict(component))
        for pods in status.get("podSets") or ():
            _label(_at(own, pods["path"]), name)
        _label(own["template"], name)
        own["template"]["metadata"] |= {"namespace": namespace, "ownerReferences": [owner]}
        found.append(own["template"])
    return found


def _noted(wrapper: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (wrapper.get("status") or {}).get("componentStatus") or ()


def _label(item: Document, name: str) -> None:
    metadata = item.get("metadata") or {}
    item["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), LABEL: name}}


def _at(component: Any, path: str) -> Any:
    found = component["template"]
    for key, index in _STEP.findall(path.removeprefix("template")):
        found = found[key] if key else found[int(index)]
    return found
