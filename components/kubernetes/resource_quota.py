"""ResourceQuotas: how much a namespace may hold (kubernetes.io, concepts/policy/resource-quotas)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document

SYSTEM_PODS: Final = {
    "scopeName": "PriorityClass",
    "operator": "In",
    "values": ["system-cluster-critical", names.SYSTEM_PRIORITY],
}
"""Scope of the pods of the priority classes that are built into Kubernetes, which preempt everybody's."""
EVICTING_PODS: Final = {**SYSTEM_PODS, "values": ["openshift-user-critical", *SYSTEM_PODS["values"]]}
"""Scope of the pods of all classes that a cluster has from the start and that evict others. OpenShift's own, of
1000000000, is for any namespace (OpenShift documentation, "Including pod priority in pod scheduling decisions")."""
FOREIGN_AFFINITY: Final = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
"""Scope of the pods whose affinity names other namespaces."""

_CRITICAL_PODS: Final = "1G"
"""As many as any cluster has (kubernetes/kubernetes, cluster/gce/addons/admission-resource-quota-critical-pods)."""


def resource_quota(
    name: str,
    namespace: pulumi.Input[str],
    hard: Mapping[str, str],
    *,
    scope: Document | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a quota. hard: the most of each. scope: which pods count; None for all that a namespace holds."""
    notes = {"annotations": dict(annotations)} if annotations else {}
    selector = {"scopeSelector": {"matchExpressions": [scope]}} if scope else {}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace, **notes},
        "spec": {"hard": dict(hard), **selector},
    }


def critical_pods(namespace: str) -> Document:
    """Return the quota that lets a namespace have pods of the system's priority classes.

    Where the API server limits these classes by default, as on GKE, only namespaces with such a quota have any;
    elsewhere it changes nothing ("Limit Priority Class consumption by default").
    """
    return resource_quota("critical-pods", namespace, {"pods": _CRITICAL_PODS}, scope=SYSTEM_PODS)
