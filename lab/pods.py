"""What pods of jobs hold, as the API server reports it."""

from collections.abc import Mapping
from typing import Any

from components import names

OF_JOB = "workload.codeflare.dev/appwrapper"
"""Label of a pod with the name of its job."""
OVER = ("Succeeded", "Failed")


def is_up(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod runs and is not being deleted."""
    return pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


def held(pod: Mapping[str, Any]) -> int:
    """Return the GPUs that a pod holds: if it is bound to a node and not finished."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in OVER:
        return 0
    limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"]["containers"]]
    return sum(int(each.get(names.GPU, 0)) for each in limits)
