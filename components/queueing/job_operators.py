"""Common parts of the operators that create the pods of jobs, as MLBatch installs them in mlbatch-system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from components import names
from components.kubernetes.manifests import SKIP_AWAIT, Document
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY, PodSecurity, nobody

RESOURCES: Final = Resources(cpu_request="100m", memory_request="100Mi", cpu_limit="500m", memory_limit="1000Mi")
"""MLBatch's values for both operators (project-codeflare/mlbatch, `setup.k8s/training-operator` and
`setup.k8s/kuberay`)."""
LOG_LEVEL: Final = "--zap-log-level=2"
"""MLBatch's value for both operators."""

_READ: Final = ("get", "list", "watch")
_LEASES: Final = (
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]},
)


@dataclass(frozen=True, kw_only=True)
class JobOperator:
    """The Deployment of an operator.

    name: of all its objects.
    labels: selector of its pods.
    arguments: of its program /manager.
    extra: more fields of the container.
    replicas: one of them leads.
    pod_security: mechanism that checks its pods.
    """

    name: str
    labels: Mapping[str, str]
    image: str
    arguments: Sequence[str]
    ports: Mapping[str, int]
    probes: Document
    extra: Document = field(default_factory=dict)
    volumes: Sequence[Document] = ()
    sidecars: Sequence[Document] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    replicas: int = 1
    resources: Resources = RESOURCES
    pod_security: PodSecurity = PodSecurity.STANDARDS
    nodes: NodeGroup = ANYWHERE


def deployment(operator: JobOperator) -> Document:
    """Return the Deployment, with the priority from MLBatch's patches."""
    apart = {
        "maxSkew": 1,
        "topologyKey": names.HOST,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(operator.labels)},
    }
    container = {
        "name": operator.name,
        "image": operator.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/manager"],
        "args": list(operator.arguments),
        "ports": [{"containerPort": port, "name": name, "protocol": "TCP"} for name, port in operator.ports.items()],
        **operator.probes,
        **operator.extra,
        "resources": operator.resources.body(),
        "securityContext": dict(READ_ONLY),
    }
    pod: dict[str, Any] = {
        "serviceAccountName": operator.name,
        "priorityClassName": names.SYSTEM_PRIORITY,
        **operator.nodes.body(RESCHEDULED),
        **({"topologySpreadConstraints": [apart]} if operator.replicas > 1 else {}),
        "securityContext": nobody(operator.pod_security),
        "terminationGracePeriodSeconds": 10,
        "containers": [container, *operator.sidecars],
        **({"volumes": list(operator.volumes)} if operator.volumes else {}),
    }
    annotations = {"annotations": dict(operator.annotations)} if operator.annotations else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_metadata(operator.name), "labels": dict(operator.labels)},
        "spec": {
            "replicas": operator.replicas,
            "selector": {"matchLabels": dict(operator.labels)},
            "template": {"metadata": {"labels": dict(operator.labels), **annotations}, "spec": pod},
        },
    }


def service(name: str, labels: Mapping[str, str], ports: Mapping[str, tuple[int, int]]) -> Document:
    """Return a Service of an operator's pods. ports: port of the Service and of the pods, by name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_metadata(name), "labels": dict(labels), "annotations": dict(SKIP_AWAIT)},
        "spec": {
            "selector": dict(labels),
            "ports": [
                {"name": which, "port": port, "protocol": "TCP", "targetPort": target}
                for which, (port, target) in ports.items()
            ],
        },
    }


def budget(operator: JobOperator) -> list[Document]:
    """Return a PodDisruptionBudget that keeps one replica while nodes are drained.

    The list is empty for a single replica, which must be able to move.
    """
    if operator.replicas == 1:
        return []
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _metadata(operator.name),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": dict(operator.labels)}},
        }
    ]


def account(name: str, cluster_rules: Sequence[Document], own_rules: Sequence[Document] = ()) -> list[Document]:
    """Return an operator's service account and its rights in the cluster and in mlbatch-system, where it leads."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": names.SYSTEM_NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(name)},
        {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": list(cluster_rules),
        },
        {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": names.RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        },
        {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(name),
            "rules": [*_LEASES, *own_rules],
        },
        {
            "apiVersion": f"{names.RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(name),
            "roleRef": {"apiGroup": names.RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    ]


def rule(group: str, resources: Sequence[str], *verbs: str) -> Document:
    """Return a role's rule that allows reading and these verbs."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": [*_READ, *verbs]}


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": names.SYSTEM_NAMESPACE}
