"""A container of a storage account as a volume of one namespace, read block by block.

Training reads small random pieces of files with terabytes. blobfuse2 therefore fetches blocks of 4 KiB without
prefetch. The values are those of edwardsp/ai-on-aks (examples/olmojob, templates/blobinput.yaml). It reports the speed
of local NVMe at about 10,000 requests a second for each node.
"""

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
"""Nominal capacity. It does not limit the container."""
_ON_DISK: Final = ("--block-cache-path", "--block-cache-disk", "--cleanup-on-start")
"""Prefixes of the options for the cache on disk."""


@dataclass(frozen=True, kw_only=True)
class ManagedIdentity:
    """The nodes' identity, which needs `Storage Blob Data Reader` on the container.

    Every process that gets onto a node, or reaches its metadata address, can act as this identity.
    """

    client_id: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class SasToken:
    """A shared access signature. It needs only the rights to read and list, and should expire soon.

    token: with or without its leading question mark.

    In contrast to an identity, it can be revoked only by rotating the account's key, and mounts fail when it expires.
    """

    token: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class WorkloadIdentity:
    """The identity of the volume's namespace. Each pod has its own mount with this identity.

    The pod needs the service account that the identity trusts. Requires Blob driver 1.27.8 or later, where this is a
    preview.
    """

    client_id: pulumi.Input[str]


Access: TypeAlias = ManagedIdentity | WorkloadIdentity | SasToken


@dataclass(frozen=True, kw_only=True)
class BlockCache:
    """How blobfuse2 reads (Azure/azure-storage-fuse, component/block_cache).

    block_kib: size of a request in KiB.
    disk_mib: size of the cache on each node in MiB, for each mount.
    folder: path prefix of the cache's folder. Its parent must exist.
    memory_mib: size of the cache in memory in MiB, for each mount.
    keep_seconds: how long a block is kept on disk.
    prefetch: blocks to read ahead: 0 for random access, otherwise more than 10.
    pod_memory_mib, pod_blocks: size of the cache in memory if each pod has its own mount. The larger one applies, but
    at most memory_mib.
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
        """Return the size in MiB of the memory cache of a mount for one pod."""
        return min(self.memory_mib, max(self.pod_memory_mib, self.pod_blocks * self.block_kib // 1024))


@dataclass(frozen=True, kw_only=True)
class BlobVolumeArgs:
    """The arguments of the volume.

    claim: name of the PersistentVolumeClaim in `namespace`, which must exist.
    account, container: must exist. A hierarchical namespace is not used.
    read_only: false lets pods write. The identity or the token then needs write access.
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
    """Create a volume and its claim. Both are deleted together, and the container remains.

    The Blob driver must be installed. The source of a volume cannot be changed, and a bound volume is not deleted. For
    another container, a volume with another name is created, and a claim for it replaces the old claim. The old volume
    is deleted last. A recreated identity recreates the same volume, after its claim is deleted. In both cases, delete
    the pods that use the claim first.
    """

    claim: pulumi.Output[str]
    """The claim's name, known when the claim exists."""

    def __init__(self, name: str, args: BlobVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:BlobVolume", name, None, opts)
        needs: list[pulumi.Resource] = []
        if isinstance(args.access, SasToken):
            options = pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"])
            needs = [Manifest(f"{name}/Secret", sas_secret(args, args.access), options)]
        options = pulumi.ResourceOptions(parent=self, depends_on=needs)
        volume = Manifest(f"{name}/PersistentVolume", persistent_volume(args), options)
        bound_by = claim(args, volume.object_name)  # the output makes the claim depend on its volume
        bound = pulumi.ResourceOptions(
            parent=self, depends_on=[volume], replace_on_changes=["spec"], delete_before_replace=True
        )
        self.claim = Manifest(f"{name}/PersistentVolumeClaim", bound_by, bound).object_name
        self.register_outputs({"claim": self.claim})


def volume_name(args: BlobVolumeArgs) -> str:
    """Return the volume's name. It is unique in the cluster and changes with every immutable field.

    The capacity is included because the claim has it too. A volume cannot be bound again after its claim is deleted.
    """
    fixed = (args.account, args.container, str(args.read_only), str(args.capacity), type(args.access).__name__)
    digest = hashlib.sha256("/".join(fixed).encode()).hexdigest()[:8]
    return f"{args.namespace}-{args.claim}-{digest}"


def sas_secret(args: BlobVolumeArgs, access: SasToken) -> Document:
    """Return the Secret with the token, under the key that the driver reads SAS tokens from.

    Under `azurestorageaccountkey` the driver would use it as the account's key (pkg/blob/blob.go).
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
    """Return blobfuse2's options, with sizes in MiB. The driver adds the options for read-only mounts.

    Each volume has its own cache folder, because blobfuse2 finds a block by the blob's path, without its container.
    blobfuse2 mounts only with an empty cache folder, and after a crash it is not empty.

    With a workload identity, each pod has its own mount (kubernetes-sigs/blob-csi-driver, pkg/blob/nodeserver.go,
    NodePublishVolume). Two mounts of a node would empty each other's folder, so the cache is only in memory, and
    smaller. A mount runs in the node's service without a memory limit (pkg/blobfuse-proxy/blobfuse-proxy.service). It
    uses all its blocks in turn, even for a file that is read at random (component/block_cache, startPrefetch).
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
