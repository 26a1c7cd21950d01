"""Volumes: data sets in blob containers, and shares for notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from pydantic import Field

from components import names
from components.azure import catalogue
from components.azure.blob_volume import CAPACITY
from components.azure.compatibility import blobfuse_fault, identity_fault
from components.azure.storage_classes import Reclaim
from components.catalogue import chart_versions
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.claims import ExistingClaimSettings
from stacks.settings.model import SettingsModel, SomeBytes, choice, form
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks.settings.values import AccountName, ContainerName

_BLOB_DRIVER: Final = chart_versions("blob-csi-driver", catalogue.CHARTS)
_NAME: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMES: Final = "at most 63 of a-z, 0-9 and -, with a letter or digit first and last (RFC 1123 label)"


_VolumeName: TypeAlias = Annotated[str, form(_NAME, _NAMES, "this name is invalid for a volume", "rename the volume")]


class BlobAccess(StrEnum):
    """Identity or token for access to a container."""

    IDENTITY = "managedIdentity"
    WORKLOAD = "workloadIdentity"
    SAS = "sas"


_BlobfuseVersion = Annotated[
    str,
    form(
        r"[0-9]+\.[0-9]+\.[0-9]+",
        "three numbers with dots, such as 2.5.4, or null for the nodes' own",
        "this is not a version of blobfuse2",
        "write the version as Azure shows it",
    ),
]


class BlobDriverSettings(SettingsModel):
    """The Blob CSI driver."""

    version: Annotated[str, choice("Blob driver version", _BLOB_DRIVER)] = _BLOB_DRIVER[0]
    """Version of the driver."""
    blobfuse: _BlobfuseVersion | None = catalogue.BLOBFUSE
    """Version of blobfuse2 to install on the nodes. null keeps the nodes' version."""


class VolumeSettings(SettingsModel):
    """A blob container as a volume in a namespace."""

    name: _VolumeName
    """Name of the claim."""
    namespace: _VolumeName | None = None
    """Namespace of the pods that mount it: the name of a team. Default: that of mlbatch:workloads."""
    account: AccountName | None = None
    """Storage account of the container. Default: the stack's."""
    container: ContainerName
    """Container with the files."""
    access: BlobAccess = BlobAccess.IDENTITY
    """`managedIdentity`: the nodes' identity. `workloadIdentity`: an identity of the namespace, only for pods with the
    service account `default`, without a disk cache. `sas`: the token in the secret blobSasToken. If the account is not
    the stack's, give the identity `Storage Blob Data Reader` on the container.
    """
    read_only: bool = True
    """Mount the volume read-only. If false, the identity or token also needs write access."""
    block_kib: Annotated[int, Field(ge=4, le=65536)] = 4
    """Size of a request in KiB. Use 4 for random access to large files, and more for sequential reads."""
    capacity: SomeBytes = CAPACITY
    """Nominal size of the volume in bytes."""

    def home(self, workloads: WorkloadsSettings | None) -> str:
        """Return the namespace, which by default is that of the workloads."""
        return self.namespace or (workloads.namespace if workloads is not None else names.WORKLOADS_NAMESPACE)

    @property
    def uses_namespace(self) -> bool:
        """Whether the volume is mounted with its namespace's identity."""
        return self.access is BlobAccess.WORKLOAD

    @property
    def uses_token(self) -> bool:
        """Whether the volume is mounted with the SAS token."""
        return self.access is BlobAccess.SAS


class FilesSettings(SettingsModel):
    """Azure Files shares that claims request."""

    reclaim: Reclaim = Reclaim.RETAIN
    """What happens to a share when its claim is deleted: `Retain` keeps it, `Delete` deletes its data."""


class StorageSettings(SettingsModel):
    """Storage volumes. The Blob driver is installed if there are any."""

    blob_driver: BlobDriverSettings = BlobDriverSettings()
    volumes: tuple[VolumeSettings, ...] = ()
    """Blob containers as volumes."""
    claims: tuple[ExistingClaimSettings, ...] = ()
    """Claims of other drivers, such as Azure Managed Lustre. Workloads may mount them like volumes."""
    files: FilesSettings = FilesSettings()

    def check(self, path: Path) -> Iterator[ConfigError]:
        driver = self.blob_driver
        if self.volumes and (fault := blobfuse_fault(driver.version, driver.blobfuse)) is not None:
            yield ConfigError(
                (*path, "blobDriver", "blobfuse"),
                fault.reason,
                fault.fix,
                expected=f"a combination that works; see {fault.source}",
            )
        for index, volume in enumerate(self.volumes):
            if volume.uses_namespace and (fault := identity_fault(driver.version)) is not None:
                yield ConfigError(
                    (*path, "volumes", index, "access"),
                    fault.reason,
                    fault.fix,
                    expected=f"a combination that works; see {fault.source}",
                )
        first: dict[str, Path] = {}
        named: Mapping[str, Sequence[VolumeSettings | ExistingClaimSettings]] = {
            "volumes": self.volumes,
            "claims": self.claims,
        }
        for kind, items in named.items():
            for index, each in enumerate(items):
                other = first.setdefault(each.name, (*path, kind, index))
                if other != (*path, kind, index):
                    problem = f"{key(other)} already has this name"
                    yield ConfigError((*path, kind, index, "name"), problem, "rename one of them")
