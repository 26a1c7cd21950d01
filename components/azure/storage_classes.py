"""Storage classes for data sets, notebooks and shared folders."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pulumi

from components.azure.blob_driver import DRIVER
from components.azure.scope import SUBNET
from components.kubernetes.manifests import Document, Manifest

BLOB: Final = "azureblob-fuse-premium"
"""Data sets in containers; also the class of volumes that name their container (edwardsp/ai-on-aks, olmojob)."""
FILES: Final = "mlbatch-files"
"""Notebooks and whatever several pods write: an SMB share for each claim (edwardsp/ai-on-aks, jupyterlab)."""
FILES_NFS: Final = "mlbatch-files-nfs"
"""Folders that need links, locks and owners as Linux has them: an NFS share for each claim."""

_FILE_DRIVER: Final = "file.csi.azure.com"
"""Part of every AKS cluster."""
_KEY_APART: Final = {"secretNamespace": "kube-system"}
"""Where the drivers store the key of the account, which holds the volumes of all teams. By default it is the claim's
namespace, whose pods mount it (docs/driver-parameters.md of both)."""
_IMMUTABLE: Final = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]
"""What the API server lets nobody change: such a class is replaced, which touches no volume."""


class Reclaim(StrEnum):
    """What becomes of a share when its claim is deleted.

    retain: it stays, and costs, until somebody deletes it. delete: it goes with its data.
    """

    RETAIN = "Retain"
    DELETE = "Delete"


@dataclass(frozen=True, kw_only=True)
class StorageClassesArgs:
    """What the classes give.

    network, resource_group: of the nodes, which NFS shares take connections from.
    blob: also create the class of the Blob driver.
    reclaim: of shares. uid, gid: owner of all files of an SMB share, which keeps no owners; nobody else may read them.
        The default is the user of Jupyter's images.
    """

    network: str
    resource_group: str
    blob: bool = True
    reclaim: Reclaim = Reclaim.RETAIN
    uid: int = 1000
    gid: int = 100


class StorageClasses(pulumi.ComponentResource):
    """Create the classes. They make no volume by themselves, and the cluster's default class stays as it is."""

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
    """Return the class of containers. A container stays when its claim goes: data sets are not disposable."""
    return _storage_class(
        BLOB,
        DRIVER,
        parameters={"skuName": "Premium_LRS", "protocol": "fuse2", **_KEY_APART},
        mount_options=["-o allow_other", "--file-cache-timeout-in-seconds=120", "--use-attr-cache=true"],
        reclaim=Reclaim.RETAIN,
    )


def files_class(args: StorageClassesArgs) -> Document:
    """Return the class of SMB shares (kubernetes-sigs/azurefile-csi-driver, docs/driver-parameters.md).

    Upstream's example opens each file to everybody, modes 0777 and owner root.
    """
    options = [
        "dir_mode=0770",
        "file_mode=0660",
        f"uid={args.uid}",
        f"gid={args.gid}",
        "mfsymlinks",
        "cache=strict",
        "actimeo=30",
        "nosharesock",
    ]
    parameters = {"skuName": "Premium_LRS", **_KEY_APART}
    return _storage_class(FILES, _FILE_DRIVER, parameters=parameters, mount_options=options, reclaim=args.reclaim)


def nfs_class(args: StorageClassesArgs) -> Document:
    """Return the class of NFS shares, which are reached from the nodes' subnet only, by its endpoint for storage.

    The subnet is named because the cluster's identity may look at that one alone: without a name the driver lists all
    of the network, and a private endpoint would need rights on the network and its DNS zones
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
    body: dict[str, Any] = {
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
    return body
