"""SecurityContextConstraints: the rights of a service account's pods on OpenShift.

A constraint of the platform names its one service account. OpenShift has a ClusterRole for each of its constraints,
which is bound in a namespace (openshift/cluster-kube-apiserver-operator, bindata/bootkube/scc-manifests).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.rbac import binding

NONROOT: Final = "nonroot-v2"
"""Any user except root, without rights on the node."""
PRIVILEGED: Final = "privileged"
HOSTMOUNT_ANYUID: Final = "hostmount-anyuid"
"""Any user, with folders of the node and NFS exports as volumes."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A constraint for the pods of one service account.

    capabilities: capabilities that they may add. If empty, they keep none.
    host: they share the node's network and processes, and mount its folders.
    any_user: any user including root.
    volumes: kinds of volumes, besides those for the node's folders.
    """

    name: str
    namespace: str
    account: str
    capabilities: Sequence[str] = ()
    host: bool = False
    any_user: bool = False
    volumes: Sequence[str] = ("projected",)

    def document(self) -> Document:
        """Return the object, with all required fields (openshift/api, security/v1/types.go)."""
        return {
            "apiVersion": "security.openshift.io/v1",
            "kind": "SecurityContextConstraints",
            "metadata": {"name": self.name},
            "priority": 0,
            "allowPrivilegedContainer": False,
            # A program with file capabilities gains them when it starts.
            "allowPrivilegeEscalation": bool(self.capabilities),
            "allowHostDirVolumePlugin": self.host,
            "allowHostIPC": False,
            "allowHostNetwork": self.host,
            "allowHostPID": self.host,
            "allowHostPorts": self.host,
            "allowedCapabilities": list(self.capabilities),
            "defaultAddCapabilities": [],
            "requiredDropCapabilities": [] if self.capabilities else ["ALL"],
            "readOnlyRootFilesystem": False,
            "runAsUser": {"type": "RunAsAny" if self.any_user else "MustRunAsNonRoot"},
            "seLinuxContext": {"type": "MustRunAs"},
            "fsGroup": {"type": "RunAsAny"},
            "supplementalGroups": {"type": "RunAsAny"},
            # Otherwise the pods would run without a filter for system calls.
            "seccompProfiles": ["runtime/default"],
            "volumes": [*(["hostPath"] if self.host else []), *self.volumes],
            "users": [f"system:serviceaccount:{self.namespace}:{self.account}"],
            "groups": [],
        }


def use(constraint: str, namespace: pulumi.Input[str], accounts: Sequence[str]) -> Document:
    """Return the binding that lets service accounts of a namespace use one of OpenShift's constraints.

    It has the name that `oc adm policy add-scc-to-user -n` would give it.
    """
    role = f"system:openshift:scc:{constraint}"
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace} for account in accounts]
    return binding(role, role, subjects, namespace, of_cluster=True)
