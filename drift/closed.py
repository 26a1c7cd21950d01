"""Where others may add to what the stack declares, and where they may not.

A list that the stack declares is closed: an item that another writer adds is drift. A field that the stack leaves out
is open, so others may set it. The fields below are exceptions, because leaving them out is a decision.
"""

from __future__ import annotations

from typing import Final

from components import names
from components.ownership import RUNTIME_FIELDS
from review.paths import WILDCARD, Path, contains, parse

_POD: Final = ("spec.template.spec",)
_RULES: Final = ("rules", "aggregationRule")
_SUBJECTS: Final = ("subjects", "roleRef")
_WEBHOOKS: Final = ("webhooks",)
_SPEC: Final = ("spec",)

SELECTED_BY: Final = (
    names.TEAM_LABEL,
    "metrics",
    *(f"pod-security.kubernetes.io/{mode}{of}" for mode in ("enforce", "audit", "warn") for of in ("", "-version")),
)
"""Namespace labels that decide about access: rules recognize teams' namespaces (components/tenancy/boundary.py),
networks allow traffic (components/queueing/network.py), and the API server sets the Pod Security level."""

_CLOSED: Final = {
    "AppWrapper": ("spec.components",),
    "ClusterQueue": _SPEC,
    "ClusterRole": _RULES,
    "ClusterRoleBinding": _SUBJECTS,
    "Cohort": _SPEC,
    "ConfigMap": ("data", "binaryData"),
    "CronJob": ("spec.jobTemplate.spec.template.spec", "spec.suspend"),
    "CustomResourceDefinition": ("spec.conversion", "spec.versions"),
    "DaemonSet": _POD,
    "Deployment": (*_POD, "spec.paused"),
    "Job": (*_POD, "spec.suspend"),
    "LimitRange": _SPEC,
    "LocalQueue": _SPEC,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "Namespace": tuple(f'metadata.labels["{label}"]' for label in SELECTED_BY),
    "NetworkPolicy": _SPEC,
    "PriorityClass": ("globalDefault",),
    "ResourceFlavor": _SPEC,
    "ResourceQuota": _SPEC,
    "Role": _RULES,
    "RoleBinding": _SUBJECTS,
    "Service": ("spec.externalIPs", "spec.externalName", "spec.loadBalancerSourceRanges", "spec.selector", "spec.type"),
    "StatefulSet": _POD,
    "ValidatingAdmissionPolicy": _SPEC,
    "ValidatingAdmissionPolicyBinding": _SPEC,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
}
"""By kind, fields that others must not set: rights, pods and their rights, network access, queue access and quotas,
and the settings that a controller reads."""

_LEFT_TO: Final = {
    "MutatingWebhookConfiguration": (("webhooks", WILDCARD, "namespaceSelector"), "admissionsenforcer"),
    "ValidatingWebhookConfiguration": (("webhooks", WILDCARD, "namespaceSelector"), "admissionsenforcer"),
}
"""A declared field that one field manager may overwrite, by kind. AKS repeatedly excludes its namespaces from every
webhook (github.com/Azure/AKS/issues/1771)."""

_OPEN: Final = {
    "Namespace": ("spec.finalizers",),
    "Node": ("spec.taints",),
    "ServiceAccount": ("secrets", "imagePullSecrets"),
}
"""Lists that controllers of a kind extend, declared or not. In all metadata, these are finalizers and owners."""


def is_closed(kind: str, path: Path) -> bool:
    """Return whether setting a field that the stack leaves out is drift. path: without items of lists."""
    return any(contains(parse(outer), path) for outer in _CLOSED.get(kind, ()))


def is_open(kind: str, path: Path) -> bool:
    """Return whether others may add items to a list that the stack declares. path: without items of lists."""
    return contains(("metadata",), path) or any(contains(parse(outer), path) for outer in _OPEN.get(kind, ()))


def is_left_to(kind: str, path: Path, manager: str) -> bool:
    """Return whether a field manager may overwrite the declared value. path: with wildcards for items of lists."""
    outer, owner = _LEFT_TO.get(kind, ((), None))
    return manager == owner and contains(outer, path)


def of_controllers(kind: str) -> tuple[Path, ...]:
    """Return the paths of a kind that controllers write while the platform runs."""
    return tuple(parse(field.path) for field in RUNTIME_FIELDS if field.kind == kind)
