"""Every version that the platform installs on AKS alone, pinned in one place (see `components.catalogue`)."""

from __future__ import annotations

from typing import Final

from components.catalogue import Artifact, Chart, Image

ARTIFACTS: Final[tuple[Artifact, ...]] = ()

CHARTS: Final = (
    Chart(
        name="blob-csi-driver",
        version="1.27.9",
        repository="https://raw.githubusercontent.com/kubernetes-sigs/blob-csi-driver/master/charts",
        registries={"image.baseRepo": ""},
        source="https://github.com/kubernetes-sigs/blob-csi-driver/blob/v1.27.9/charts/README.md",
    ),
    Chart(
        name="blob-csi-driver",
        version="v1.24.1",
        repository="https://raw.githubusercontent.com/kubernetes-sigs/blob-csi-driver/master/charts",
        registries={"image.baseRepo": ""},
        source="https://github.com/edwardsp/ai-on-aks/blob/main/README.md",
    ),
)

BLOBFUSE: Final = "2.5.4"
"""The blobfuse2 that blob-csi-driver 1.27.9 installs on Ubuntu nodes (charts/v1.27.9/blob-csi-driver/values.yaml)."""

NODE_HEALTH_CHECKS: Final = Image(
    reference="mcr.microsoft.com/aznhc/aznhc-nv:1.2.0",
    source="https://github.com/Azure/ai-infrastructure-on-azure/blob/main/utilities/aks/torset_labeler/helm/values.yaml",
)
