"""The pods that an AppWrapper asks for, in full.

What Kueue counts of them is a copy without all that no queue looks at, such as volumes and the host's network
(AppWrapper v1.1.2, `pkg/utils/utils.go`, GetPodTemplateSpec).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
"""A step of a path such as template.spec.workerGroupSpecs[0].template (ibid., getValueAtPath)."""

Document = dict[str, Any]


def templates(wrapper: Mapping[str, Any]) -> list[Document]:
    """Return an AppWrapper's pod templates, from where AppWrapper has noted that they are; none before it has."""
    noted = (wrapper.get("status") or {}).get("componentStatus") or ()
    return [
        _at(component, pods["path"])
        for component, status in zip(wrapper["spec"]["components"], noted, strict=False)
        for pods in status.get("podSets") or ()
    ]


def _at(component: Any, path: str) -> Any:
    found = component["template"]
    for key, index in _STEP.findall(path.removeprefix("template")):
        found = found[key] if key else found[int(index)]
    return found
