"""Storage classes, and blob containers as volumes."""

from __future__ import annotations

from collections.abc import Mapping

from components import catalogue
from components.kubernetes.namespace import Namespace
from components.storage.blob_driver import BlobDriver, BlobDriverArgs
from components.storage.blob_volume import Access, BlobVolume, BlobVolumeArgs, BlockCache, ManagedIdentity, SasToken
from components.storage.storage_classes import StorageClasses, StorageClassesArgs
from stacks.aks.infrastructure import Infrastructure
from stacks.batch import Batch, On
from stacks.load import BLOB_SAS_TOKEN, Stack
from stacks.settings.storage import VolumeSettings


def mount(stack: Stack, azure: Infrastructure, namespace: Namespace, queues: Batch, on: On) -> Mapping[str, BlobVolume]:
    """Register classes, the Blob driver where a volume needs it, and the volumes; return those by name."""
    settings = stack.settings.storage
    wanted = settings.volumes
    StorageClasses("classes", StorageClassesArgs(blob=bool(wanted), reclaim=settings.files.reclaim), on())
    if not wanted:
        return {}
    chart = stack.mirror.chart(catalogue.find_chart("blob-csi-driver", settings.blob_driver.version))
    driver = BlobDriver("blob-driver", BlobDriverArgs(chart=chart, blobfuse=settings.blob_driver.blobfuse), on())
    own = stack.settings.workloads.namespace
    found = {}
    for volume in wanted:
        account = volume.account or azure.account
        assert account is not None
        args = BlobVolumeArgs(
            claim=volume.name,
            namespace=volume.namespace,
            account=account,
            container=volume.container,
            access=_access(stack, azure, volume),
            read_only=volume.read_only,
            capacity=volume.capacity,
            cache=BlockCache(block_kib=volume.block_kib),
        )
        home = namespace if volume.namespace == own else queues.teams[volume.namespace]
        found[volume.name] = BlobVolume(volume.name, args, on(driver, *azure.storage, home))
    return found


def _access(stack: Stack, azure: Infrastructure, volume: VolumeSettings) -> Access:
    if volume.uses_token:
        return SasToken(token=stack.secrets[BLOB_SAS_TOKEN])
    return ManagedIdentity(client_id=azure.kubelet_client)
