"""Says of the local environment what of the OSS MLOps platform is not the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.charts.sources import STUB_OF


def report(workloads: Sequence[Mapping[str, Any]]) -> str:
    """Return what is to be said, by the platform's Deployments; nothing where there are none."""
    if not workloads:
        return ""
    annotations = workloads[0]["metadata"].get("annotations") or {}
    lines = ["OSS MLOps platform", f"  its {len(workloads)} Deployments run nothing: their pods are simulated"]
    if STUB_OF in annotations:
        objects = annotations.get("emulator/stub-of-objects", "several hundred")
        lines.append(
            f"  a stub of {objects} objects, of which it has workloads, Services and claims: {annotations[STUB_OF]}"
        )
    return "\n".join(lines)
