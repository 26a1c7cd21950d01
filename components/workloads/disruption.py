"""What keeps a job whose state is nowhere else than on its nodes from being ended by a drain."""

from __future__ import annotations

import pulumi

from components.kubernetes.manifests import Document
from components.workloads.pods import WORKLOAD_LABEL


def disruption_budget(name: str, namespace: pulumi.Input[str], pods: int) -> Document:
    """Return the budget by which none of a workload's pods may be evicted.

    A drain, as of an upgrade of the node, waits then and fails in the end. Who ends pods in another way is not kept
    from it: Kueue, AppWrapper, a taint of effect NoExecute. pods: how many there are, as Kubernetes counts by number
    only the pods of what cannot be scaled, such as a Job (kubernetes.io, tasks/run-application/configure-pdb).
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "labels": {WORKLOAD_LABEL: name}},
        "spec": {"minAvailable": pods, "selector": {"matchLabels": {WORKLOAD_LABEL: name}}},
    }
