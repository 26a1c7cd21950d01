"""Protect jobs whose state is only on their nodes from drains."""

from __future__ import annotations

import pulumi

from components.kubernetes.manifests import Document
from components.workloads.pods import WORKLOAD_LABEL


def disruption_budget(name: str, namespace: pulumi.Input[str], pods: int) -> Document:
    """Return the PodDisruptionBudget that prevents evictions of a workload's pods.

    A drain, for example in an upgrade of the node, then waits and finally fails. Other ways to end pods are still
    possible: Kueue, AppWrapper, a taint with effect NoExecute.
    pods: number of pods. Kubernetes needs a number for objects without a scale, such as a Job (kubernetes.io,
    tasks/run-application/configure-pdb).
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "labels": {WORKLOAD_LABEL: name}},
        "spec": {"minAvailable": pods, "selector": {"matchLabels": {WORKLOAD_LABEL: name}}},
    }
