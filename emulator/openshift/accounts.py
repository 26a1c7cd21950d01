"""The service accounts and role bindings of each namespace in OpenShift, recreated if deleted.

Clusters with the capabilities Build, DeploymentConfig and ImageRegistry have them, which is the default from 4.16 on.
Sources: openshift/openshift-controller-manager, pkg/authorization/defaultrolebindings/project_policy.go and
pkg/cmd/controller/serviceaccount.go. Without an image registry here, accounts do not get pull secrets.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final

from emulator.cluster.api import Object
from emulator.cluster.store import Key

_RBAC: Final = "rbac.authorization.k8s.io"
_ACCOUNTS: Final = {"builder": "system:image-builder", "deployer": "system:deployer"}
"""The role of each account. The name of its binding is the role's, with an s."""
_PULLER: Final = "system:image-puller"


def lacking(namespaces: Iterable[Object], accounts: Container[Key], bindings: Container[Key]) -> Iterator[Object]:
    """Yield the missing accounts and RoleBindings of namespaces. accounts, bindings: the existing ones."""
    for namespace in namespaces:
        if "deletionTimestamp" in namespace["metadata"]:
            continue
        name = namespace["metadata"]["name"]
        for document in _documents(name):
            there = accounts if document["kind"] == "ServiceAccount" else bindings
            if (name, document["metadata"]["name"]) not in there:
                yield document


def _documents(namespace: str) -> Iterator[Object]:
    for account, role in _ACCOUNTS.items():
        metadata = {"name": account, "namespace": namespace}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        yield _binding(namespace, role, {"kind": "ServiceAccount", "namespace": namespace, "name": account})
    everybody = {"apiGroup": _RBAC, "kind": "Group", "name": f"system:serviceaccounts:{namespace}"}
    yield _binding(namespace, _PULLER, everybody)


def _binding(namespace: str, role: str, subject: Object) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{role}s", "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
