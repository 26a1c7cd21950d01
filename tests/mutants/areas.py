"""The parts of the program with a separate score, and the part of each change."""

from collections.abc import Mapping, Sequence
from typing import Final

AREAS: Final[Mapping[str, Sequence[str]]] = {
    "security": (
        "components/tenancy/boundary", "components/tenancy/callers", "components/tenancy/pod_",
        "components/tenancy/own_volumes", "components/tenancy/operator_scope", "components/tenancy/service_policy",
        "components/tenancy/scratch_rules", "components/tenancy/editor", "components/tenancy/train_jobs",
        "components/kubernetes/security",
        "components/kubernetes/network", "components/kubernetes/admission", "components/kubernetes/own_node",
        "components/kubernetes/in_cluster", "components/passwords", "components/azure/identity",
        "components/azure/roles", "components/azure/credentials", "stacks/config/kubeconfig", "stacks/config/secrets",
        "stacks/config/exposure", "stacks/layers/boundary", "stacks/layers/network",
    ),
    "validation": ("stacks/validation", "stacks/settings", "stacks/targets/aks/settings",
        "stacks/targets/aks/rules", "stacks/targets/existing/settings", "stacks/targets/simulated/settings",
        "stacks/config/parsing", "stacks/config/errors", "stacks/config/inputs", "stacks/config/sections",
        "stacks/derived/partial",
        "components/compatibility", "components/azure/compatibility",
    ),
    "azure": ("components/azure", "stacks/targets/aks"),
    "queueing and tenancy": ("components/queueing", "components/tenancy", "components/scheduling",
        "stacks/derived/quotas", "stacks/derived/borrowing", "stacks/layers/queueing", "stacks/layers/tenancy",
        "stacks/layers/scheduling",
    ),
    "workloads": ("components/workloads", "stacks/layers/workloads"),
    "nodes": ("components/nodes", "components/health", "stacks/layers/gpu_nodes", "stacks/layers/health"),
}  # fmt: skip
"""Beginnings of files, by area; the first that fits counts."""
OTHER: Final = "other"


def area(file: str) -> str:
    """Return the area of a file."""
    return next((name for name, begins in AREAS.items() if file.startswith(tuple(begins))), OTHER)
