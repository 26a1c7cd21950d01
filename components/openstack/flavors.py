"""The flavors of cPouta that a VM may have, and what CSC charges for them, from flavors.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A flavor.

    memory_gib: memory in GiB, rounded down.
    gpu: model of its GPUs.
    rate: billing units an hour. None for a flavor of another cloud.
    """

    name: str
    cores: int
    memory_gib: int
    rate: Decimal | None = None
    gpus: int = 0
    gpu: str = ""

    @property
    def resized_within(self) -> str:
        """Nova can resize a VM between flavors with the same value.

        It is the family, such as standard. Between families, resizing "mostly does not work because of the different
        storage backends" (CSC's guide, cloud/pouta/known-problems.md). For GPU flavors it is the flavor itself: Nova
        does not copy the disks of such a VM, which then never boots again (support/faq/how-to-resize-in-pouta.md). The
        families of other clouds are unknown.
        """
        return self.name if self.gpus or self.rate is None else self.name.rpartition(".")[0]


class _Flavors(Table):
    volume_rates: Mapping[str, Decimal]
    floating_ip_rate: Decimal
    boot_volume: str
    flavors: tuple[Flavor, ...]


_FLAVORS: Final = _Flavors.load(__name__)
VOLUME_RATES: Final = _FLAVORS.volume_rates
FLOATING_IP_RATE: Final = _FLAVORS.floating_ip_rate
BOOT_VOLUME: Final = _FLAVORS.boot_volume
FLAVORS: Final = {flavor.name: flavor for flavor in _FLAVORS.flavors}


def volume_rate(kind: str, size_gib: int) -> Decimal | None:
    """Return the billing units an hour for a volume, or None for a type that CSC does not list."""
    rate = VOLUME_RATES.get(kind)
    return None if rate is None else rate * size_gib / 1024
