"""A storage class for an existing NFS server. Each PVC gets its own folder.

Objects, names and settings: kubernetes-sigs/nfs-subdir-external-provisioner, its chart
`charts/nfs-subdir-external-provisioner` 4.0.18, which has no hooks and no CRDs. They are declared one by one, so that a
preview shows them and a refresh finds changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes import workloads
from components.kubernetes.constraints import HOSTMOUNT_ANYUID, Constraint, use
from components.kubernetes.manifests import Document, Manifest, register_all
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.rbac import READ, Account, role, rule
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY, PodSecurity
from components.layer import Layer

NAMESPACE: Final = "nfs-provisioner"
RELEASE: Final = "nfs"
CONSTRAINT: Final = "mlbatch-nfs-provisioner"
RESOURCES: Final = Resources(cpu_request="100m", memory_request="128Mi", cpu_limit="1", memory_limit="128Mi")
"""The proposal in the chart's values.yaml, with a reserve for many PVCs at once."""

_CHART: Final = "nfs-subdir-external-provisioner"
_VOLUME: Final = "nfs-subdir-external-provisioner-root"
_MOUNTED: Final = "/persistentvolumes"


@dataclass(frozen=True, kw_only=True)
class NfsProvisionerArgs:
    """The arguments of the provisioner.

    release: prefix of the objects' names, like a release of the chart.
    server, path: of the export.
    storage_class, provisioner: names. Both are part of every volume and must not change.
    nodes: where services run. They must reach the server.
    pod_security: the mechanism that decides which pods may mount an NFS volume as root, which owns the folders.
    hostmount: use OpenShift's constraint as in MLBatch's tutorial. It also lets the pod mount folders of its node.
    """

    release: str
    server: str
    path: str
    storage_class: str
    provisioner: str
    image: str
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS
    hostmount: bool = False


class NfsProvisioner(Layer):
    """Install the provisioner and its storage class.

    The size of a volume counts only for quotas, because the server does not limit a folder. The folder of a deleted PVC
    is kept as `archived-<namespace>-<claim>-<volume>`.
    """

    storage_class: pulumi.Output[str]
    """Its name, known when PVCs of the class can be provisioned."""

    def __init__(self, name: str, args: NfsProvisionerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:NfsProvisioner", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = Manifest(f"{name}/Namespace", namespace_body(NamespaceArgs(name=NAMESPACE)), child)
        made = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        foundation = register_all(name, (*rights(args), *foundation_documents(args)), made, named=True)
        works = pulumi.ResourceOptions(parent=self, depends_on=foundation)
        provisioner = Manifest(f"{name}/Deployment", deployment(args), works)
        # Only metadata and volume expansion of a storage class can be changed in place.
        served = pulumi.ResourceOptions(
            parent=self,
            depends_on=[provisioner],
            replace_on_changes=["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"],
            delete_before_replace=True,
        )
        class_made = Manifest(f"{name}/StorageClass", storage_class(args), served)
        self.storage_class = class_made.object_name
        self.ready: Sequence[pulumi.Resource] = [class_made]
        self.register_outputs({"storageClass": self.storage_class})


def full_name(release: str) -> str:
    """Return the name of the provisioner's objects, including its service account (the chart's `_helpers.tpl`)."""
    return (release if _CHART in release else f"{release}-{_CHART}")[:63].removesuffix("-")


def provisioner_name(release: str) -> str:
    """Return the default name of the provisioner (the chart's `_helpers.tpl`)."""
    return f"cluster.local/{full_name(release)}"


def rights(args: NfsProvisionerArgs) -> list[Document]:
    """Return the objects that OpenShift needs before the provisioner's pod is created, only for its service account."""
    if args.pod_security is not PodSecurity.SCC:
        return []
    account = full_name(args.release)
    if args.hostmount:
        return [use(HOSTMOUNT_ANYUID, NAMESPACE, [account])]
    own = Constraint(name=CONSTRAINT, namespace=NAMESPACE, account=account, any_user=True, volumes=("nfs", "projected"))
    return [own.document()]


def foundation_documents(args: NfsProvisionerArgs) -> list[Document]:
    """Return the service account and its rights."""
    name = full_name(args.release)
    account, runner, lock = Account(name=name, namespace=NAMESPACE), f"{name}-runner", f"leader-locking-{name}"
    rules = [
        rule("", ["nodes"], READ),
        rule("", ["persistentvolumes"], [*READ, "create", "delete"]),
        rule("", ["persistentvolumeclaims"], [*READ, "update"]),
        rule("storage.k8s.io", ["storageclasses"], READ),
        rule("", ["events"], ["create", "update", "patch"]),
    ]
    leads = [rule("", ["endpoints"], [*READ, "create", "update", "patch"])]
    return [
        account.document(),
        role(runner, rules),
        account.bound(runner, name=f"run-{name}"),
        *account.granted(leads, NAMESPACE, name=lock),
    ]


def deployment(args: NfsProvisionerArgs) -> Document:
    """Return the provisioner's Deployment. It mounts the export to create folders in it."""
    labels = {"app": _CHART, "release": args.release}
    variables = {"PROVISIONER_NAME": args.provisioner, "NFS_SERVER": args.server, "NFS_PATH": args.path}
    container = {
        "name": _CHART,
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": RESOURCES.body(),
        # Without capabilities, as in upstream's PodSecurityPolicy (the chart's `podsecuritypolicy.yaml`).
        "securityContext": dict(READ_ONLY),
        "volumeMounts": [{"name": _VOLUME, "mountPath": _MOUNTED}],
    }
    pod = {
        "serviceAccountName": full_name(args.release),
        **args.nodes.body(RESCHEDULED),
        "securityContext": {"runAsUser": 0},
        "containers": [container],
        "volumes": [{"name": _VOLUME, "nfs": {"server": args.server, "path": args.path}}],
    }
    return workloads.deployment(full_name(args.release), NAMESPACE, labels, pod, recreate=True)


def storage_class(args: NfsProvisionerArgs) -> Document:
    """Return the class. As in the chart, it is not the cluster's default."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": args.storage_class},
        "provisioner": args.provisioner,
        "parameters": {"archiveOnDelete": "true"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }
