"""One container of a storage account as a volume of one namespace, read block by block.

Training reads small pieces at random from files of terabytes, so blobfuse2 fetches blocks of 4 KiB, and none ahead. The
values are those of edwardsp/ai-on-aks (examples/olmojob, templates/blobinput.yaml); it reports the same speed as from
local NVMe at about 10,000 requests a second and node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pulumi

from components.azure.blob_driver import DRIVER
from components.azure.storage_classes import BLOB
from components.kubernetes import objects
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.quantity import Quantity

CAPACITY: Final = Quantity.parse("8Ti")
"""Nominal: what a container holds is not limited by it."""
_ON_DISK: Final = ("--block-cache-path", "--block-cache-disk", "--cleanup-on-start")
"""How the options of the cache on disk begin."""


@dataclass(frozen=True, kw_only=True)
class ManagedIdentity:
    """The nodes' own identity, which needs `Storage Blob Data Reader` on the container. client_id: of the identity.

    Whatever gets onto a node, or at its metadata address, can act as it.
    """

    client_id: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class SasToken:
    """A shared access signature: read and list on the container are enough, and it should not live long.

    token: without its leading question mark, or with it. Gives up what an identity has: nobody can withdraw it other
    than with the account's key, and mounts fail when it expires.
    """

    token: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class WorkloadIdentity:
    """The identity of the volume's namespace, as which each pod's own mount acts. client_id: of the identity.

    The pod needs the service account that the identity trusts. Blob driver 1.27.8 or later, which calls it a preview.
    """

    client_id: pulumi.Input[str]


Access: TypeAlias = ManagedIdentity | WorkloadIdentity | SasToken


@dataclass(frozen=True, kw_only=True)
class BlockCache:
    """How blobfuse2 reads (Azure/azure-storage-fuse, component/block_cache).

    block_kib: size of a request. disk_mib: of the cache on each node. folder: how the path of its folder begins, which
    is made in one that exists. memory_mib: of the cache in memory. Each mount has both for its own. keep_seconds: how
    long a block is kept on disk. prefetch: blocks read ahead; 0 for random access, and otherwise more than 10.
    pod_memory_mib, pod_blocks: of the cache in memory where each pod has a mount of its own, whichever is more, and
    never more than memory_mib.
    """

    block_kib: int = 4
    folder: str = "/mnt/blobfuse"
    disk_mib: int = 102400
    memory_mib: int = 1024
    pod_memory_mib: int = 256
    pod_blocks: int = 64
    keep_seconds: int = 604800
    parallelism: int = 128
    prefetch: int = 0

    def memory_of_a_pod(self) -> int:
        """Return the MiB of the cache in memory of a mount that one pod has for itself."""
        return min(self.memory_mib, max(self.pod_memory_mib, self.pod_blocks * self.block_kib // 1024))


@dataclass(frozen=True, kw_only=True)
class BlobVolumeArgs:
    """What to mount where.

    claim: name of the PersistentVolumeClaim in `namespace`, which must exist.
    account, container: must exist; a hierarchical namespace is not used.
    read_only: false lets pods write, for which identity or token need more than reading.
    """

    claim: str
    namespace: str
    account: str
    container: str
    access: Access
    read_only: bool = True
    capacity: Quantity = CAPACITY
    cache: BlockCache = BlockCache()


class BlobVolume(pulumi.ComponentResource):
    """Create a volume and the one claim that may bind it; both go together, and the container stays.

    The Blob driver must be installed. Where a volume's data is cannot be changed, and a volume that a claim holds is
    not deleted. Another container therefore makes a volume of another name, and a claim that binds it takes the old
    claim's place; the old volume goes last. An identity that was made anew makes the same volume anew, for which the
    claim goes first. Pods that use it have to go before either.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    def __init__(self, name: str, args: BlobVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:BlobVolume", name, None, opts)
        needs: list[pulumi.Resource] = []
        if isinstance(args.access, SasToken):
            options = pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"])
            needs = [Manifest(f"{name}/Secret", sas_secret(args, args.access), options)]
        options = pulumi.ResourceOptions(parent=self, depends_on=needs)
        volume = Manifest(f"{name}/PersistentVolume", persistent_volume(args), options)
        bound_by = claim(args, volume.object_name)  # by the output: only so does the claim go before its volume
        bound = pulumi.ResourceOptions(
            parent=self, depends_on=[volume], replace_on_changes=["spec"], delete_before_replace=True
        )
        self.claim = Manifest(f"{name}/PersistentVolumeClaim", bound_by, bound).object_name
        self.register_outputs({"claim": self.claim})


def volume_name(args: BlobVolumeArgs) -> str:
    """Return the volume's name, one in the whole cluster, and another one for everything that cannot be changed.

    The capacity is part of it because the claim has it too: a volume cannot be bound again once its claim is gone.
    """
    fixed = (args.account, args.container, str(args.read_only), str(args.capacity), type(args.access).__name__)
    digest = hashlib.sha256("/".join(fixed).encode()).hexdigest()[:8]
    return f"{args.namespace}-{args.claim}-{digest}"


def sas_secret(args: BlobVolumeArgs, access: SasToken) -> Document:
    """Return the Secret with the token, under the key that the driver takes as one.

    Under `azurestorageaccountkey` the driver would take it for the account's key (pkg/blob/blob.go).
    """
    token = pulumi.Output.secret(access.token).apply(lambda text: text.strip().removeprefix("?"))
    return objects.secret(
        _secret_name(args),
        args.namespace,
        {"azurestorageaccountname": args.account, "azurestorageaccountsastoken": token},
    )


def persistent_volume(args: BlobVolumeArgs) -> Document:
    """Return the volume (kubernetes-sigs/blob-csi-driver, docs/driver-parameters.md, static provisioning)."""
    source: dict[str, Any] = {
        "driver": DRIVER,
        "volumeHandle": f"{args.account}_{args.container}_{volume_name(args)}",
        "readOnly": args.read_only,
        "volumeAttributes": {
            "protocol": "fuse2",
            "storageAccount": args.account,
            "containerName": args.container,
            **_attributes(args.access),
        },
    }
    if isinstance(args.access, SasToken):
        source["nodeStageSecretRef"] = {"name": _secret_name(args), "namespace": args.namespace}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name(args), "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        "spec": {
            "capacity": {"storage": str(args.capacity)},
            "accessModes": _modes(args),
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": BLOB,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": args.claim,
                "namespace": args.namespace,
            },
            "mountOptions": mount_options(args),
            "csi": source,
        },
    }


def claim(args: BlobVolumeArgs, volume: pulumi.Input[str]) -> Document:
    """Return the claim of the volume of this name."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": args.claim, "namespace": args.namespace},
        "spec": {
            "accessModes": _modes(args),
            "resources": {"requests": {"storage": str(args.capacity)}},
            "volumeName": volume,
            "storageClassName": BLOB,
        },
    }


def mount_options(args: BlobVolumeArgs) -> list[str]:
    """Return blobfuse2's options, with sizes in MiB; the driver itself adds what a read-only mount needs.

    The cache's folder is the volume's own: blobfuse2 finds a block in it by the blob's path alone, whatever container
    that is in. It mounts over an empty folder only, which one is not after a crash. By a workload identity each pod has
    a mount of its own (kubernetes-sigs/blob-csi-driver, pkg/blob/nodeserver.go, NodePublishVolume): two of a node would
    empty each other's folder, so that the cache is in memory alone, and in less of it: a mount runs in the node's own
    service, which nothing limits (pkg/blobfuse-proxy/blobfuse-proxy.service), and uses all its blocks in turn, however
    few a file that is read at random keeps (component/block_cache, startPrefetch).
    """
    cache, own = args.cache, isinstance(args.access, WorkloadIdentity)
    options = [
        "-o allow_other",
        "--block-cache",
        f"--block-cache-path={cache.folder}-{volume_name(args)}",
        "--cleanup-on-start=true",
        f"--block-cache-block-size={cache.block_kib / 1024:g}",
        f"--block-cache-disk-size={cache.disk_mib}",
        f"--block-cache-disk-timeout={cache.keep_seconds}",
        f"--block-cache-pool-size={cache.memory_of_a_pod() if own else cache.memory_mib}",
        f"--block-cache-parallelism={cache.parallelism}",
        f"--block-cache-prefetch={cache.prefetch}",
        "--block-cache-prefetch-on-open=false",
        "--use-adls=false",
    ]
    if own:
        return [option for option in options if not option.startswith(_ON_DISK)]
    return options


def _attributes(access: Access) -> Mapping[str, pulumi.Input[str]]:
    if isinstance(access, SasToken):
        return {"AzureStorageAuthType": "sas"}
    if isinstance(access, WorkloadIdentity):
        return {"clientID": access.client_id, "mountWithWorkloadIdentityToken": "true"}
    return {"AzureStorageAuthType": "msi", "AzureStorageIdentityClientID": access.client_id}


def _modes(args: BlobVolumeArgs) -> list[str]:
    return ["ReadOnlyMany"] if args.read_only else ["ReadWriteMany"]


def _secret_name(args: BlobVolumeArgs) -> str:
    return f"{args.claim}-sas-token"
