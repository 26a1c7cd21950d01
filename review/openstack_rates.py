"""CSC's charges for a project of cPouta, in billing units per hour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from review.plan import Plan, Resource
from review.prices import Charge

UNIT: Final = "billing units"
FLOATING_IP: Final = "floating address"
_PREFIX: Final = "openstack:"
_INSTANCE: Final = "openstack:compute/instance:Instance"
_VOLUME: Final = "openstack:blockstorage/volume:Volume"
_FLOATING: Final = "openstack:networking/floatingIp:FloatingIp"
_GIB: Final = "GiB of a volume of type "
_BOOT_VOLUME: Final = "standard"
"""The default volume type, for example of volumes that VMs boot from."""


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
