"""Azure's GPU sizes and the regions that offer them, from sizes.yaml, and what the names of other sizes state."""

import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from components.azure.baselines import THRESHOLDS
from components.nodes.machines import Machine
from components.tables import Table

MOST_PODS: Final = 250
"""The most pods on a node of a cluster with overlay networking, and the default."""

_RESERVED_PER_POD_MB: Final = 20
_RESERVED_MB: Final = 50
_EVICTION_MIB: Final = 100


@dataclass(frozen=True, kw_only=True)
class VmSize:
    """A machine type with NVIDIA GPUs.

    memory_gib: nominal memory in GiB.
    gpu_product: value of the label `nvidia.com/gpu.product`.
    infiniband_ports: one for each GPU, or 0.
    infiniband_feature: the subscription needs the feature AKSInfinibandSupport so that ports reach other nodes. For
    GB200 and GB300 it must be off (`Azure/ai-infrastructure-on-azure`, infrastructure_references/aks/README.md).
    topology: the file of `Azure/azhpc-images`, topology, that describes its devices to NCCL. None if NCCL detects them.
    family: name of the regional vCPU quota for its nodes.
    reservable: Azure has capacity reservations of it (`MicrosoftDocs/azure-compute-docs`, articles/virtual-machines/
    capacity-reservation-overview.md, February 2026).
    regions: regions that offer it. None if no source lists them.
    """

    name: str
    vcpus: int
    memory_gib: int
    gpus: int
    gpu_product: str
    infiniband_ports: int = 0
    infiniband_feature: bool = False
    topology: str | None = None
    family: str
    reservable: bool = False
    regions: frozenset[str] | None
    source: str

    @property
    def refuses_infiniband_feature(self) -> bool:
        """True if its ports work only while the subscription does not have the feature."""
        return bool(self.infiniband_ports) and not self.infiniband_feature

    def machine(self, *, max_pods: int = MOST_PODS) -> Machine:
        """Return a node with the resources for pods, without those that AKS reserves for the kubelet.

        Reservations: `MicrosoftDocs/azure-aks-docs`, articles/aks/node-resource-reservations.md (1.29 and later). Its
        table ends at 64 cores. Larger nodes continue with its last step of 10 millicores for each core.
        """
        kept = (_RESERVED_PER_POD_MB * max_pods + _RESERVED_MB) * 1000**2 + _EVICTION_MIB * 1024**2
        return Machine(
            name=self.name,
            cpu=f"{1000 * self.vcpus - _reserved_millicores(self.vcpus)}m",
            memory=f"{self.memory_gib - math.ceil(kept / 1024**3)}Gi",
            gpus=self.gpus,
            gpu_product=self.gpu_product,
            ports=self.infiniband_ports,
            pods=max_pods,
            source=self.source,
            thresholds=THRESHOLDS.get(self.name, {}),
        )


class _Sizes(Table):
    regions_as_of: date
    regions: frozenset[str]
    regions_without_zones: frozenset[str]
    regions_without_pair: frozenset[str]
    sizes: tuple[VmSize, ...]


_SIZES: Final = _Sizes.load(__name__)
REGIONS_AS_OF: Final = _SIZES.regions_as_of
REGIONS: Final = _SIZES.regions
REGIONS_WITHOUT_ZONES: Final = _SIZES.regions_without_zones
REGIONS_WITHOUT_PAIR: Final = _SIZES.regions_without_pair
GPU_SIZES: Final = {size.name: size for size in _SIZES.sizes}


def _reserved_millicores(cores: int) -> int:
    """Return AKS's CPU reservation in millicores: 60 for the first core, then 40, 20 and 20, then 10 each."""
    return sum((60, 40, 20, 20)[: min(cores, 4)]) + 10 * max(0, cores - 4)


MACHINES: Final = {name: size.machine() for name, size in GPU_SIZES.items()}
"""The machine types as nodes of an AKS cluster with default values."""

_NAME: Final = re.compile(
    r"Standard_(?P<family>[A-Z]+)(?P<cores>[0-9]+)(?:-(?P<active>[0-9]+))?(?P<features>[a-z]*)[A-Za-z0-9_]*"
)
_COUNTED: Final = frozenset({"E", "F", "L", "M"})
"""Families whose names contain vCPUs since the first version (learn.microsoft.com/azure/virtual-machines/sizes)."""
_OLD_D: Final = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 11: 2, 12: 4, 13: 8, 14: 16, 15: 20}
"""vCPUs of families D and DS up to version 2, by the number in the name (articles `dv2-dsv2-series`)."""


def is_vm_size(name: str) -> bool:
    """Return whether a name has the form of Azure's machine type names."""
    return _NAME.fullmatch(name) is not None


def family_of(name: str) -> str:
    """Return the family letters of a machine type, such as ND. Empty for a name of another form."""
    match = _NAME.fullmatch(name)
    return match["family"] if match else ""


def takes_premium_disks(name: str) -> bool:
    """Return whether a machine type supports premium disks: its name contains an s (vm-naming-conventions)."""
    match = _NAME.fullmatch(name)
    return match is not None and ("s" in match["features"] or match["family"].endswith("S"))


def vcpus_of(name: str) -> int | None:
    """Return the vCPUs that pods of a machine type have, or None if its name does not show them.

    From the third version of a family on, the number in its name is that of the vCPUs, or of the active ones
    (learn.microsoft.com/azure/virtual-machines/vm-naming-conventions). For families A of version 2, E, F, L and M, it
    always is. In other older names it is an index of the size. Only those of D and DS are supported.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    suffix = re.search(r"_v([0-9]+)$", name)
    version, number = int(suffix[1]) if suffix else 1, int(match["cores"])
    if match["active"]:
        return int(match["active"])
    if version >= 3 or match["family"] in _COUNTED or (match["family"], version) == ("A", 2):
        return number
    return _OLD_D.get(number) if match["family"] in ("D", "DS") else None
