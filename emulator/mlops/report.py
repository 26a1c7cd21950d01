"""Reports which parts of the local OSS MLOps platform are not real."""

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.charts.sources import STUB_OF


def report(workloads: Sequence[Mapping[str, Any]]) -> str:
    """Return the report for the platform's Deployments, empty without any."""
    if not workloads:
        return ""
    annotations = workloads[0]["metadata"].get("annotations") or {}
    lines = ["OSS MLOps platform", f"  its {len(workloads)} Deployments run no programs: their pods are simulated"]
    if STUB_OF in annotations:
        lines.append(
            "  a stub: its objects have names only, definitions without validation, webhooks without calls: "
            f"{annotations[STUB_OF]}"
        )
    return "\n".join(lines)
