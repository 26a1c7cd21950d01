"""The Blob CSI driver: mounts containers of a storage account as volumes with blobfuse2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.artifacts import LocatedChart
from components.azure.aks import SYSTEM_NODES
from components.kubernetes.charts import ChartArgs, ChartLayer

DRIVER: Final = "blob.csi.azure.com"
_NAMESPACE: Final = "kube-system"
"""Upstream's namespace, where the driver finds the cluster's cloud configuration."""


@dataclass(frozen=True, kw_only=True)
class BlobDriverArgs:
    """The arguments of the driver.

    chart: blob-csi-driver. AKS's own Blob driver must be off, because its objects have the same names.
    blobfuse: version of blobfuse2 to install on each Ubuntu node. None keeps the version of AKS's node image.
    Installers up to 1.26.6 cannot install an older version than the image has.
    """

    chart: LocatedChart
    blobfuse: str | None


class BlobDriver(ChartLayer):
    """Install the driver with its proxy, which keeps volumes mounted during an upgrade of the driver.

    Creates no storage class and no volume.
    """

    def __init__(self, name: str, args: BlobDriverArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        chart = ChartArgs(
            chart=args.chart, namespace=_NAMESPACE, release="blob-csi-driver", values=blob_driver_values(args)
        )
        super().__init__("mlbatch:storage:BlobDriver", name, chart, opts)


def blob_driver_values(args: BlobDriverArgs) -> Mapping[str, Any]:
    """Return the chart's values (kubernetes-sigs/blob-csi-driver, charts/README.md)."""
    proxy: dict[str, Any] = {"installBlobfuse": False, "installBlobfuse2": args.blobfuse is not None}
    if args.blobfuse is not None:
        proxy["blobfuse2Version"] = args.blobfuse
    return {
        "controller": SYSTEM_NODES.body(),
        "node": {"enableBlobfuseProxy": True, "blobfuseProxy": proxy, "tolerations": [{"operator": "Exists"}]},
    }
