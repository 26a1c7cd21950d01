"""CSC's charges for a project of cPouta, in billing units per hour."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Final

from review.plan import Plan, Resource
from review.prices import Charge, Price

UNIT: Final = "billing units"
FLOATING_IP: Final = "floating address"
_PREFIX: Final = "openstack:"
_INSTANCE: Final = "openstack:compute/instance:Instance"
_VOLUME: Final = "openstack:blockstorage/volume:Volume"
_FLOATING: Final = "openstack:networking/floatingIp:FloatingIp"
_GIB: Final = "GiB of a volume of type "
_BOOT_VOLUME: Final = "standard"
"""The default volume type, for example of volumes that VMs boot from."""
_AS_OF: Final = date(2026, 11, 22)
_FLAVORS: Final = "https://docs.csc.fi/cloud/pouta/vm-flavors-and-billing/"
_ACCOUNTING: Final = "https://docs.csc.fi/cloud/pouta/accounting/"


def _price(item: str, rate: str, source: str = _FLAVORS) -> Price:
    return Price(item=item, regions=(), per_hour=Decimal(rate), as_of=_AS_OF, source=source)


RATES: Final[tuple[Price, ...]] = (
    _price("standard.xxlarge", "8.4"),
    _price("standard.3xlarge", "16.8"),
    _price("hpc.4.10core", "12"),
    _price("hpc.4.20core", "25"),
    _price("hpc.4.40core", "50"),
    _price("hpc.4.80core", "100"),
    _price("hpc.5.16core", "20"),
    _price("hpc.5.32core", "40"),
    _price("hpc.5.64core", "80"),
    _price("hpc.5.128core", "160"),
    _price("hpc.6.14core", "23"),
    _price("hpc.6.28core", "45"),
    _price("hpc.6.56core", "90"),
    _price("hpc.6.112core", "180"),
    _price("gpu.1.1gpu", "60"),
    _price("gpu.1.2gpu", "120"),
    _price("gpu.1.4gpu", "240"),
    _price(f"{_GIB}standard", "0.003515625", _ACCOUNTING),
    _price(f"{_GIB}capacity", "0.0017578125", _ACCOUNTING),
    _price(FLOATING_IP, "0.2", _ACCOUNTING),
)
"""Per TiB of a volume: 3.6 and 1.8."""


def charges(plan: Plan) -> Iterator[Charge]:
    """Yield CSC's charges for a plan's resources."""
    for resource in plan.resources.values():
        if resource.custom and resource.type.startswith(_PREFIX):
            yield from _charge(resource)


def _charge(resource: Resource) -> Iterator[Charge]:
    inputs = resource.inputs
    if resource.type == _INSTANCE:
        yield _pieces(str(inputs.get("flavorName")), 1)
        for device in inputs.get("blockDevices") or ():
            yield _pieces(f"{_GIB}{_BOOT_VOLUME}", int(device["volumeSize"]))
    elif resource.type == _VOLUME:
        size = inputs.get("size")
        yield _pieces(f"{_GIB}{inputs.get('volumeType')}", int(size) if isinstance(size, int | float) else 1)
    elif resource.type == _FLOATING:
        yield _pieces(FLOATING_IP, 1)


def _pieces(item: str, number: int) -> Charge:
    return Charge(item=item, region="", fewest=number, most=number)
