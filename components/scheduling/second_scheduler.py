"""Common parts of schedulers that run next to the cluster's default one.

The cluster's built-in roles, which match its version, give them the rights of the default scheduler (kubernetes.io,
tasks/extend-kubernetes/configure-multiple-schedulers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.objects import checksum
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.security import READ_ONLY, PodSecurity, nobody

CONFIG_FILE: Final = "scheduler-config.yaml"
CONFIG_FOLDER: Final = "/etc/kubernetes"
PORT: Final = 10259
"""Port of a scheduler's health endpoint, by HTTPS."""

_BUILT_IN: Final = {"as-kube-scheduler": "system:kube-scheduler", "as-volume-scheduler": "system:volume-scheduler"}


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a scheduler, and its pod.

    name: of all its objects, including the service account.
    labels: selector of its pods.
    config_map: name of the ConfigMap with its configuration.
    config: text of the file in it. Empty if the program has none.
    replicas: one of them leads.
    pod_security: mechanism that checks its pods.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    replicas: int = 1
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS
    config_map: str = ""
    config: str = ""


def deployment(program: Program, container: Document) -> Document:
    """Return the Deployment. Its pods have a higher priority than jobs. A new configuration replaces them."""
    apart = {
        "maxSkew": 1,
        "topologyKey": names.HOST,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(program.labels)},
    }
    hardened = {**container, "imagePullPolicy": "IfNotPresent", "securityContext": dict(READ_ONLY)}
    annotations = dict(checksum(program.config)) if program.config else {}
    volumes = [{"name": program.config_map, "configMap": {"name": program.config_map}}] if program.config else []
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": program.name, "namespace": program.namespace, "labels": dict(program.labels)},
        "spec": {
            "replicas": program.replicas,
            "selector": {"matchLabels": dict(program.labels)},
            "template": {
                "metadata": {"labels": dict(program.labels), **({"annotations": annotations} if annotations else {})},
                "spec": {
                    "serviceAccountName": program.name,
                    "priorityClassName": names.SYSTEM_PRIORITY,
                    **program.nodes.body(RESCHEDULED),
                    **({"topologySpreadConstraints": [apart]} if program.replicas > 1 else {}),
                    "securityContext": nobody(program.pod_security),
                    "containers": [hardened],
                    **({"volumes": volumes} if volumes else {}),
                },
            },
        },
    }


def budget(program: Program) -> list[Document]:
    """Return a PodDisruptionBudget that keeps one replica while nodes are drained.

    The list is empty for a single replica, which must be able to move.
    """
    if program.replicas == 1:
        return []
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": program.name, "namespace": program.namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": dict(program.labels)}},
        }
    ]


def account(program: Program) -> Document:
    """Return the program's service account."""
    metadata = {"name": program.name, "namespace": program.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def role(name: str, rules: Sequence[Document]) -> Document:
    """Return a ClusterRole."""
    return {"apiVersion": f"{names.RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}


def bound(program: Program, role_name: str, name: str | None = None) -> Document:
    """Return the ClusterRoleBinding for the program's service account."""
    return {
        "apiVersion": f"{names.RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name or program.name},
        "roleRef": {"apiGroup": names.RBAC, "kind": "ClusterRole", "name": role_name},
        "subjects": [_subject(program)],
    }


def as_scheduler(program: Program, prefix: str) -> list[Document]:
    """Return the rights to schedule pods, and to lead by a lease in its namespace.

    prefix: of the binding's name. With this binding, it reads how the API server authenticates clients.
    """
    reader = "extension-apiserver-authentication-reader"
    return [
        *(bound(program, built_in, f"{program.name}-{what}") for what, built_in in _BUILT_IN.items()),
        *leads_by(program, program.name, program.namespace),
        _bound_in(program, "kube-system", f"{prefix}::{reader}", reader),
    ]


def leads_by(program: Program, lease: str, namespace: str) -> list[Document]:
    """Return the rights for one lease of a namespace and no other."""
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    own = {
        "apiVersion": f"{names.RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": program.name, "namespace": namespace},
        "rules": [
            {**leases, "verbs": ["create"]},
            {**leases, "resourceNames": [lease], "verbs": ["get", "update"]},
        ],
    }
    return [own, _bound_in(program, namespace, program.name, program.name)]


def _bound_in(program: Program, namespace: str, name: str, role_name: str) -> Document:
    return {
        "apiVersion": f"{names.RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": names.RBAC, "kind": "Role", "name": role_name},
        "subjects": [_subject(program)],
    }


def _subject(program: Program) -> Document:
    return {"kind": "ServiceAccount", "name": program.name, "namespace": program.namespace}
