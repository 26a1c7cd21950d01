"""Compatible versions of software that only AKS has (see `components.compatibility`)."""

from typing import Final

from components.azure.catalogue import BLOBFUSE, CHARTS
from components.catalogue import find_chart
from components.compatibility import Row, Verdict, numbers

_FIRST_CLEANING: Final = (2, 5, 0)
_FIRST_DOWNGRADING: Final = (1, 26, 7)
_FIRST_KEEPING_MOUNTS: Final = (1, 27, 8)
_ON_NODES: Final = "2.5.1"
"""Azure/AgentBaker, cse_install_ubuntu.sh, BLOBFUSE2_VERSION. Later images have later versions."""
_DRIVER: Final = find_chart("blob-csi-driver", charts=CHARTS).version


def blobfuse_fault(driver: str, blobfuse: str | None) -> Row | None:
    """Return why a version of blobfuse2 cannot mount the volumes or be installed on the nodes, or None.

    Before 2.5.0 `--cleanup-on-start` applies to another cache, and a volume cannot be mounted again after a crash. Up
    to 1.26.6 the Blob driver's installer requires exactly this version and forbids downgrades. AKS's Ubuntu images have
    a newer version, so the installer's pods fail on every node.
    """
    if blobfuse is not None and numbers(blobfuse) < _FIRST_CLEANING:
        return Row(
            verdict=Verdict.BROKEN,
            reason=f"blobfuse2 {blobfuse} does not empty its block cache when it starts, so it cannot mount a volume "
            "again after a crash",
            fix=f"set mlbatch:storage.blobDriver.blobfuse to {BLOBFUSE}, or to null to use the nodes' own",
            source="https://github.com/Azure/azure-storage-fuse/issues/1765",
        )
    if blobfuse is None or numbers(driver) >= _FIRST_DOWNGRADING or numbers(blobfuse) >= numbers(_ON_NODES):
        return None
    return Row(
        verdict=Verdict.BROKEN,
        reason=f"the nodes have blobfuse2 {_ON_NODES} or later. The installer of blob-csi-driver {driver} cannot "
        "downgrade it",
        fix=f"set mlbatch:storage.blobDriver.version to {_DRIVER}, "
        "or mlbatch:storage.blobDriver.blobfuse to null to use the nodes' own",
        source="https://github.com/kubernetes-sigs/blob-csi-driver/issues/1000, "
        "https://github.com/kubernetes-sigs/blob-csi-driver/issues/1846",
    )


def identity_fault(driver: str) -> Row | None:
    """Return why a version of the Blob driver cannot mount with a pod's identity, or None.

    Before 1.27.0 it uses a pod's token only to fetch the account's key, which grants all rights. Up to 1.27.7 it lists
    the container of each such mount every minute or two. If that fails once, it unmounts the container under its
    running pod (pkg/blob/nodeserver.go, ensureMountPoint).
    """
    if numbers(driver) >= _FIRST_KEEPING_MOUNTS:
        return None
    return Row(
        verdict=Verdict.BROKEN,
        reason=f"blob-csi-driver {driver} does not mount as a workload identity, or loses such mounts while pods run",
        fix=f"set mlbatch:storage.blobDriver.version to {_DRIVER}, or access to managedIdentity",
        source="https://github.com/kubernetes-sigs/blob-csi-driver/blob/v1.27.8/pkg/blob/nodeserver.go",
    )
