"""The Blob CSI driver: containers of a storage account as volumes, by blobfuse2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.artifacts import LocatedChart
from components.azure.aks import SYSTEM_NODES
from components.kubernetes.charts import Chart, ChartArgs
from components.layer import Layer

DRIVER: Final = "blob.csi.azure.com"
_NAMESPACE: Final = "kube-system"
"""Upstream's, where the driver finds the cluster's cloud configuration."""
_EVERYWHERE: Final = {"operator": "Exists"}


@dataclass(frozen=True, kw_only=True)
class BlobDriverArgs:
    """What to install.

    chart: blob-csi-driver. AKS's own Blob driver must be off: it has the same objects.
    blobfuse: version of blobfuse2 to put on each Ubuntu node; None leaves the one of AKS's node image. Installers up to
        1.26.6 cannot go back to an older one than the image has.
    """

    chart: LocatedChart
    blobfuse: str | None


class BlobDriver(Layer):
    """Install the driver with its proxy, which keeps volumes mounted while the driver itself is upgraded.

    Creates no class and no volume.
    """

    def __init__(self, name: str, args: BlobDriverArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:storage:BlobDriver", name, None, opts)
        chart = Chart(
            name,
            ChartArgs(
                chart=args.chart, namespace=_NAMESPACE, release="blob-csi-driver", values=blob_driver_values(args)
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.ready = chart.ready
        self.register_outputs({})


def blob_driver_values(args: BlobDriverArgs) -> Mapping[str, Any]:
    """Return the chart's values (kubernetes-sigs/blob-csi-driver, charts/README.md)."""
    proxy: dict[str, Any] = {"installBlobfuse": False, "installBlobfuse2": args.blobfuse is not None}
    if args.blobfuse is not None:
        proxy["blobfuse2Version"] = args.blobfuse
    return {
        "controller": SYSTEM_NODES.body(),
        "node": {"enableBlobfuseProxy": True, "blobfuseProxy": proxy, "tolerations": [dict(_EVERYWHERE)]},
    }
