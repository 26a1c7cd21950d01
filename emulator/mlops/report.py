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
        lines.append(
            "  a stub: each of its objects by name, definitions that take anything, webhooks that call nobody: "
            f"{annotations[STUB_OF]}"
        )
    return "\n".join(lines)
