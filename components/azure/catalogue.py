"""Read every version that the platform installs only on AKS from catalogue.yaml."""

from collections.abc import Mapping
from typing import Final

from components.catalogue import Artifact, Chart, Image
from components.tables import Table


class _Catalogue(Table):
    charts: tuple[Chart, ...]
    blobfuse: str
    images: Mapping[str, Image]


_CATALOGUE: Final = _Catalogue.load(__name__)
ARTIFACTS: Final[tuple[Artifact, ...]] = ()
CHARTS: Final = _CATALOGUE.charts
BLOBFUSE: Final = _CATALOGUE.blobfuse
IMAGES: Final = _CATALOGUE.images
NODE_HEALTH_CHECKS: Final = IMAGES["node_health_checks"]
