"""The notebook's rights in its project: create Ray clusters and read their state.

The guide lets every pod of the project edit all objects in it, including Secrets (`oc adm policy add-role-to-group edit
system:serviceaccounts:sandbox`). By default, only the notebook's service account has rights, and only those that
codeflare-sdk needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document

ROLE: Final = "workbench"
GROUP_BINDING: Final = "sa-edit"
"""Name in hobbyist-guide-to-rhoai, configs/09/sa-edit-rb.yaml."""
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
RULES: Final = (
    {"apiGroups": ["ray.io"], "resources": ["rayclusters", "rayjobs"], "verbs": _WRITE},
    {"apiGroups": ["workload.codeflare.dev"], "resources": ["appwrappers"], "verbs": _WRITE},
    {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues", "workloads"], "verbs": _READ},
    {"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": _READ},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["pods", "services", "events"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]},
)
"""The requests of codeflare-sdk (v0.20.2, cluster/cluster.py and utils/generate_cert.py).

It finds the certificate of a Ray cluster among all Secrets by the cluster's label, because OpenShift AI gives it a name
that ends with a hash. Users who can create Ray clusters can read every Secret of the project anyway, with a pod that
mounts it.
"""


def of_notebook(name: str, namespace: pulumi.Input[str]) -> Sequence[Document]:
    """Return the role and its binding to a notebook's service account, which the notebook's controller creates."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {
        "apiVersion": f"{names.RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": ROLE, "namespace": namespace},
        "rules": [dict(rule) for rule in RULES],
    }
    return [role, _binding(ROLE, namespace, "Role", ROLE, subject)]


def of_group(namespace: pulumi.Input[str]) -> Sequence[Document]:
    """Return the guide's binding. Every service account of the project may edit the project."""
    group = pulumi.Output.concat("system:serviceaccounts:", namespace)
    subject = {"apiGroup": names.RBAC, "kind": "Group", "name": group}
    return [_binding(GROUP_BINDING, namespace, "ClusterRole", "edit", subject)]


def _binding(name: str, namespace: pulumi.Input[str], kind: str, role: str, subject: Document) -> Document:
    return {
        "apiVersion": f"{names.RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": names.RBAC, "kind": kind, "name": role},
        "subjects": [subject],
    }
