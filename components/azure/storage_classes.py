"""Storage classes for data sets, notebooks and shared folders."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pulumi

from components.azure.blob_driver import DRIVER
from components.azure.scope import SUBNET
from components.kubernetes.manifests import Document, Manifest

BLOB: Final = "azureblob-fuse-premium"
"""Class for data sets in containers, and for volumes that name their container (edwardsp/ai-on-aks, olmojob)."""
FILES: Final = "mlbatch-files"
"""Class for notebooks and folders that several pods write: an SMB share for each claim (edwardsp/ai-on-aks,
jupyterlab)."""
FILES_NFS: Final = "mlbatch-files-nfs"
"""Class for folders with Linux links, locks and owners: an NFS share for each claim."""

_FILE_DRIVER: Final = "file.csi.azure.com"
"""Part of every AKS cluster."""
_KEY_APART: Final = {"secretNamespace": "kube-system"}
"""Namespace where the drivers store the account's key, because the account has the volumes of all teams. The default is
the claim's namespace, whose pods can mount the key (docs/driver-parameters.md of both)."""
_IMMUTABLE: Final = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]
"""Fields that the API server does not let change. A change replaces the class and does not affect volumes."""


class Reclaim(StrEnum):
    """What happens to a share when its claim is deleted.

    retain: the share and its cost remain until an administrator deletes it. delete: the share and its data are deleted.
    """

    RETAIN = "Retain"
    DELETE = "Delete"


@dataclass(frozen=True, kw_only=True)
class StorageClassesArgs:
    """The arguments of the classes.

    network, resource_group: of the nodes. NFS shares accept connections from there.
    blob: also create the class of the Blob driver.
    reclaim: of shares.
    """

    network: str
    resource_group: str
    blob: bool = True
    reclaim: Reclaim = Reclaim.RETAIN


class StorageClasses(pulumi.ComponentResource):
    """Create the classes. Does not create volumes or change the cluster's default class."""

    def __init__(self, name: str, args: StorageClassesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:StorageClasses", name, None, opts)
        options = pulumi.ResourceOptions(parent=self, replace_on_changes=_IMMUTABLE, delete_before_replace=True)
        bodies = [files_class(args), nfs_class(args)]
        if args.blob:
            bodies.append(blob_class())
        for body in bodies:
            Manifest(f"{name}/{body['metadata']['name']}", body, options)
        self.register_outputs({})


def blob_class() -> Document:
    """Return the class for containers. A container outlives its claim, because data sets are valuable."""
    return _storage_class(
        BLOB,
        DRIVER,
        parameters={"skuName": "Premium_LRS", "protocol": "fuse2", **_KEY_APART},
        mount_options=["-o allow_other", "--file-cache-timeout-in-seconds=120", "--use-attr-cache=true"],
        reclaim=Reclaim.RETAIN,
    )


def files_class(args: StorageClassesArgs) -> Document:
    """Return the class for SMB shares (kubernetes-sigs/azurefile-csi-driver, docs/driver-parameters.md).

    A share does not store owners: the user of Jupyter's images owns all files, and other users cannot read them.
    Upstream's example lets all users access each file, with mode 0777 and owner root.
    """
    options = [
        "dir_mode=0770",
        "file_mode=0660",
        "uid=1000",
        "gid=100",
        "mfsymlinks",
        "cache=strict",
        "actimeo=30",
        "nosharesock",
    ]
    parameters = {"skuName": "Premium_LRS", **_KEY_APART}
    return _storage_class(FILES, _FILE_DRIVER, parameters=parameters, mount_options=options, reclaim=args.reclaim)


def nfs_class(args: StorageClassesArgs) -> Document:
    """Return the class for NFS shares.

    They are reachable only from the nodes' subnet, through its endpoint for storage.

    The class names the subnet, because the cluster's identity may read only this one. Without a name the driver lists
    all subnets of the network. A private endpoint would need rights on the network and its DNS zones
    (kubernetes-sigs/azurefile-csi-driver, `updateSubnetServiceEndpoints` and docs/driver-parameters.md).
    """
    parameters = {
        "skuName": "Premium_LRS",
        "protocol": "nfs",
        "vnetResourceGroup": args.resource_group,
        "vnetName": args.network,
        "subnetName": SUBNET,
    }
    options = ["nconnect=4", "noresvport", "actimeo=30"]
    return _storage_class(FILES_NFS, _FILE_DRIVER, parameters=parameters, mount_options=options, reclaim=args.reclaim)


def _storage_class(
    name: str, provisioner: str, *, parameters: dict[str, str], mount_options: list[str], reclaim: Reclaim
) -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "parameters": parameters,
        "mountOptions": mount_options,
        "reclaimPolicy": reclaim.value,
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }
