"""The flavors of cPouta that a VM may have: what is in one, and what CSC charges for it.

Source: CSC's user guide (CSCfi/csc-user-guide, docs/cloud/pouta/vm-flavors-and-billing.md). Shelving a VM ends its
charge; stopping it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

VOLUME_RATES: Final[Mapping[str, Decimal]] = MappingProxyType({"standard": Decimal("3.6"), "capacity": Decimal("1.8")})
"""Billing units for a TiB of a volume in an hour, by the volume's type, attached or not."""
BOOT_VOLUME: Final = "standard"
"""Type of a volume that a VM boots from, which asks for none (CSC's guide, cloud/pouta/persistent-volumes.md)."""
FLOATING_IP_RATE: Final = Decimal("0.2")
"""Billing units for a floating address in an hour, associated or not."""


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A flavor. memory_gib: rounded down to whole GiB. gpu: the model of its GPUs. rate: billing units in an hour."""

    name: str
    cores: int
    memory_gib: int
    rate: Decimal
    gpus: int = 0
    gpu: str = ""

    @property
    def resized_within(self) -> str:
        """Of flavors with the same one, Nova makes one of another out of a VM.

        A family, such as standard: between families that "mostly does not work because of the different storage
        backends" (CSC's guide, cloud/pouta/known-problems.md). With GPUs the flavor alone: Nova does not copy the
        disks of such a VM, which then never boots again (support/faq/how-to-resize-in-pouta.md).
        """
        return self.name if self.gpus else self.name.rpartition(".")[0]


def _flavor(name: str, cores: int, memory_gib: int, rate: str, gpus: int = 0) -> Flavor:
    gpu = "Tesla-P100-PCIE-16GB" if gpus else ""
    return Flavor(name=name, cores=cores, memory_gib=memory_gib, rate=Decimal(rate), gpus=gpus, gpu=gpu)


FLAVORS: Final[Mapping[str, Flavor]] = MappingProxyType(
    {
        flavor.name: flavor
        for flavor in (
            _flavor("standard.xxlarge", 8, 31, "8.4"),
            _flavor("standard.3xlarge", 8, 62, "16.8"),
            _flavor("hpc.4.10core", 10, 42, "12"),
            _flavor("hpc.4.20core", 20, 85, "25"),
            _flavor("hpc.4.40core", 40, 171, "50"),
            _flavor("hpc.4.80core", 80, 343, "100"),
            _flavor("hpc.5.16core", 16, 58, "20"),
            _flavor("hpc.5.32core", 32, 116, "40"),
            _flavor("hpc.5.64core", 64, 232, "80"),
            _flavor("hpc.5.128core", 128, 464, "160"),
            _flavor("hpc.6.14core", 14, 88, "23"),
            _flavor("hpc.6.28core", 28, 176, "45"),
            _flavor("hpc.6.56core", 56, 352, "90"),
            _flavor("hpc.6.112core", 112, 705, "180"),
            _flavor("gpu.1.1gpu", 14, 117, "60", gpus=1),
            _flavor("gpu.1.2gpu", 28, 234, "120", gpus=2),
            _flavor("gpu.1.4gpu", 56, 468, "240", gpus=4),
        )
    }
)
"""By name, the default first: those with the eight cores that the MLOps platform asks for (its setup.sh)."""


def volume_rate(kind: str, size_gib: int) -> Decimal | None:
    """Return the billing units for a volume in an hour, None for a type that CSC does not list."""
    rate = VOLUME_RATES.get(kind)
    return None if rate is None else rate * size_gib / 1024
