"""Costs per hour of a plan's machines."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from review import prices
from review.plan import Plan, Resource
from review.prices import Charge, Cost
from review.replacement import azure_type

_CLUSTER: Final = "containerservice:ManagedCluster"
_POOL: Final = "containerservice:AgentPool"
_TIER: Final = "AKS tier {}"
"""Name of the charge for a cluster's control plane, from `sku.tier` of a managed cluster."""

UNIT: Final = "billing units"
FLOATING_IP: Final = "floating address"
_PREFIX: Final = "openstack:"
_INSTANCE: Final = "openstack:compute/instance:Instance"
_VOLUME: Final = "openstack:blockstorage/volume:Volume"
_FLOATING: Final = "openstack:networking/floatingIp:FloatingIp"
_GIB: Final = "GiB of a volume of type "
_BOOT_VOLUME: Final = "standard"
"""The default volume type, for example of volumes that VMs boot from."""


def of_plan(plan: Plan | None) -> Cost:
    """Return the cost of a plan. A stack that does not exist (None) and simulated nodes have no cost."""
    return prices.cost(charges(plan) if plan else (), prices.AZURE)


def units_of_plan(plan: Plan | None) -> Cost:
    """Return the cost of a plan in CSC's billing units, with the unit's name in place of US dollars."""
    return prices.cost(units(plan) if plan else (), prices.OPENSTACK)


def charges(plan: Plan) -> Iterator[Charge]:
    """Yield the charges for a plan's resources. A resource without a price per hour has an unknown price."""
    resources = [(azure_type(each.type), each) for each in plan.resources.values() if each.custom]
    region = _region([each for _, each in resources])
    for kind, resource in resources:
        if kind is None or kind in prices.WITHOUT_CHARGE:
            continue
        if kind == _CLUSTER:
            tier = str((resource.inputs.get("sku") or {}).get("tier", "Free"))
            yield Charge(item=_TIER.format(tier), region=region, fewest=1, most=1)
            for profile in resource.inputs.get("agentPoolProfiles") or ():
                yield _pool(profile, region)
        elif kind == _POOL:
            yield _pool(resource.inputs, region)
        else:
            yield Charge(item=f"{resource.kind} {resource.name} (by use or tier)", region="", fewest=1, most=1)


def _pool(inputs: Mapping[str, Any], region: str) -> Charge:
    size, count = str(inputs.get("vmSize", "an unknown size")), _number(inputs.get("count"), 1)
    if inputs.get("enableAutoScaling"):
        fewest, most = _number(inputs.get("minCount"), 0), _number(inputs.get("maxCount"), count)
        return Charge(item=size, region=region, fewest=fewest, most=most)
    return Charge(item=size, region=region, fewest=count, most=count)


def _number(value: object, default: int) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _region(resources: list[Resource]) -> str:
    """Return the cluster's region, otherwise the region of any Azure resource. A pool has no location."""
    located = [each for each in resources if isinstance(each.inputs.get("location"), str)]
    located.sort(key=lambda each: azure_type(each.type) != _CLUSTER)
    return str(located[0].inputs["location"]) if located else ""


def units(plan: Plan) -> Iterator[Charge]:
    """Yield CSC's charges for a plan's resources."""
    for resource in plan.resources.values():
        if resource.custom and resource.type.startswith(_PREFIX):
            yield from _units(resource)


def _units(resource: Resource) -> Iterator[Charge]:
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
