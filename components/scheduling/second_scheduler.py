"""What schedulers have in common that run beside the cluster's own one.

By the cluster's built-in roles, which fit its version, such a one may what Kubernetes' own one may (kubernetes.io,
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
"""Of a scheduler's health, by HTTPS."""

_RBAC: Final = "rbac.authorization.k8s.io"
_BUILT_IN: Final = {"as-kube-scheduler": "system:kube-scheduler", "as-volume-scheduler": "system:volume-scheduler"}


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a scheduler, and the pod that runs it.

    name: of all its objects, the account among them. labels: by which its pods are found.
    config_map: of its configuration, and config the text of the file in it; empty for a program that reads none.
    replicas: of which one leads. nodes: for services. pod_security: what judges its pods.
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
    """Return the Deployment; its pods outrank jobs, and are replaced when the configuration changes."""
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
    """Return what keeps one replica while nodes are drained. A single one has none, for it has to move."""
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
    """Return the program's account."""
    metadata = {"name": program.name, "namespace": program.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def role(name: str, rules: Sequence[Document]) -> Document:
    """Return a ClusterRole."""
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}


def bound(program: Program, role_name: str, name: str | None = None) -> Document:
    """Return the binding of a ClusterRole to the program's account in the whole cluster."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name or program.name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role_name},
        "subjects": [_subject(program)],
    }


def as_scheduler(program: Program, prefix: str) -> list[Document]:
    """Return what lets a program schedule pods, and lead by a lease of its namespace.

    prefix: of the name of the binding by which it reads how the API server knows its clients.
    """
    reader = "extension-apiserver-authentication-reader"
    return [
        *(bound(program, built_in, f"{program.name}-{what}") for what, built_in in _BUILT_IN.items()),
        *leads_by(program, program.name, program.namespace),
        _bound_in(program, "kube-system", f"{prefix}::{reader}", reader),
    ]


def leads_by(program: Program, lease: str, namespace: str) -> list[Document]:
    """Return what lets a program lead by one lease of a namespace, and touch no other one that is there."""
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    own = {
        "apiVersion": f"{_RBAC}/v1",
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
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role_name},
        "subjects": [_subject(program)],
    }


def _subject(program: Program) -> Document:
    return {"kind": "ServiceAccount", "name": program.name, "namespace": program.namespace}
