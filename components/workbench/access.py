"""The notebook's rights in its project: create Ray clusters and read their state.

The guide lets every pod of the project edit all objects in it, including Secrets (`oc adm policy add-role-to-group edit
system:serviceaccounts:sandbox`). By default, only the notebook's service account has rights, and only those that
codeflare-sdk needs.
"""

from collections.abc import Sequence
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.rbac import READ, Account, binding, rule

ROLE: Final = "workbench"
GROUP_BINDING: Final = "sa-edit"
"""Name in hobbyist-guide-to-rhoai, configs/09/sa-edit-rb.yaml."""
_WRITE: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
RULES: Final = (
    rule("ray.io", ["rayclusters", "rayjobs"], _WRITE),
    rule("workload.codeflare.dev", ["appwrappers"], _WRITE),
    rule("kueue.x-k8s.io", ["localqueues", "workloads"], READ),
    rule("route.openshift.io", ["routes"], READ),
    rule("networking.k8s.io", ["ingresses"], READ),
    rule("", ["pods", "services", "events"], READ),
    rule("", ["pods/log"], ["get"]),
    rule("", ["secrets"], ["get", "list"]),
)
"""The requests of codeflare-sdk (v0.20.2, cluster/cluster.py and utils/generate_cert.py).

It finds the certificate of a Ray cluster among all Secrets by the cluster's label, because OpenShift AI gives it a name
that ends with a hash. Users who can create Ray clusters can read every Secret of the project anyway, with a pod that
mounts it.
"""


def of_notebook(name: str, namespace: pulumi.Input[str]) -> Sequence[Document]:
    """Return the role and its binding to a notebook's service account, which the notebook's controller creates."""
    return Account(name=name, namespace=namespace).granted(RULES, namespace, name=ROLE)


def of_group(namespace: pulumi.Input[str]) -> Sequence[Document]:
    """Return the guide's binding. Every service account of the project may edit the project."""
    group = pulumi.Output.concat("system:serviceaccounts:", namespace)
    subject = {"apiGroup": names.RBAC, "kind": "Group", "name": group}
    return [binding(GROUP_BINDING, "edit", [subject], namespace, of_cluster=True)]
