"""Protect jobs whose state is only on their nodes from drains."""

from __future__ import annotations

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import Document
from components.workloads.pods import WORKLOAD_LABEL


def disruption_budget(name: str, namespace: pulumi.Input[str], pods: int) -> Document:
    """Return the PodDisruptionBudget that prevents evictions of a workload's pods.

    A drain, for example in an upgrade of the node, then waits and finally fails. Other ways to end pods are still
    possible: Kueue, AppWrapper, a taint with effect NoExecute.
    pods: number of pods. Kubernetes needs a number for objects without a scale, such as a Job (kubernetes.io,
    tasks/run-application/configure-pdb).
    """
    labels = {WORKLOAD_LABEL: name}
    return objects.disruption_budget(name, namespace, labels, pods, labels)
