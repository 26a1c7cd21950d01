"""ResourceQuotas: limits of a namespace (kubernetes.io, concepts/policy/resource-quotas)."""

from collections.abc import Mapping
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.objects import metadata

SYSTEM_PODS: Final = {
    "scopeName": "PriorityClass",
    "operator": "In",
    "values": ["system-cluster-critical", names.SYSTEM_PRIORITY],
}
"""Scope for pods of Kubernetes' built-in priority classes, which preempt all other pods."""
EVICTING_PODS: Final = {**SYSTEM_PODS, "values": ["openshift-user-critical", *SYSTEM_PODS["values"]]}
"""Scope for pods of all built-in classes that preempt others. It includes OpenShift's class with value 1000000000,
which every namespace may use (OpenShift documentation, "Including pod priority in pod scheduling decisions")."""
FOREIGN_AFFINITY: Final = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
"""Scope for pods whose affinity names other namespaces."""

_CRITICAL_PODS: Final = "1G"
"""More than any cluster has (kubernetes/kubernetes, cluster/gce/addons/admission-resource-quota-critical-pods)."""


def resource_quota(
    name: str,
    namespace: pulumi.Input[str],
    hard: Mapping[str, str],
    *,
    scope: Document | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a quota. hard: limits by name. scope: the pods that count, None for everything in the namespace."""
    selector = {"scopeSelector": {"matchExpressions": [scope]}} if scope else {}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(name, namespace, annotations=annotations),
        "spec": {"hard": dict(hard), **selector},
    }


def critical_pods(namespace: str) -> Document:
    """Return the quota that lets a namespace have pods of the system's priority classes.

    Some API servers limit these classes by default, for example on GKE. There, only namespaces with such a quota may
    use them. On other clusters it has no effect ("Limit Priority Class consumption by default").
    """
    return resource_quota("critical-pods", namespace, {"pods": _CRITICAL_PODS}, scope=SYSTEM_PODS)
