"""AKS's rules for agent pools: sizes, counts, zones, labels, placement, quotas."""

import re

from emulator.azure.errors import invalid, refused
from emulator.azure.facts import Size
from emulator.azure.services.base import POOL, Request, require
from emulator.azure.services.network import Subnet
from emulator.azure.store import Properties

_MOST_NODES = 1000
_RETIRED_TAG = "skipgpudriverinstall"
_RESERVED_LABELS = ("kubernetes.azure.com/", "kubernetes.io/")
_SPOT_LABEL = "kubernetes.azure.com/scalesetpriority"
"""A label of spot machines, which their pools may set."""
_TAINT = re.compile(r"[A-Za-z0-9./_-]+(?:=[A-Za-z0-9._-]*)?:(?:NoSchedule|PreferNoSchedule|NoExecute)")


def check_pool(request: Request, cluster: Properties) -> None:
    """Raise ArmError if AKS would reject a pool of a cluster, independent of the pool's earlier state."""
    body, name, location = request.body, request.names["agentPoolName"], str(cluster["location"])
    size = size_of(request, location)
    _check_count(body, name)
    _check_zones(request, size, location)
    _check_labels(body)
    _check_spot(body, name)
    subnet_id = body.get("vnetSubnetID")
    if subnet_id and require(request.state, subnet_id, f"the pool {name} (vnetSubnetID)").type != Subnet.type:
        raise invalid(f"vnetSubnetID of the pool {name} is not a subnet: {subnet_id}")
    _check_proximity(request, location)
    _check_reservation(body, name)
    tags = {str(key).lower(): str(value).lower() for key, value in (body.get("tags") or {}).items()}
    if request.creates and size.gpus and tags.get(_RETIRED_TAG) == "true":
        # https://github.com/Azure/AKS/issues/4925; creation is rejected: https://github.com/Azure/azure-cli/pull/32531.
        raise refused("SkipGPUDriverInstallNotSupported", pool=name)
    _check_quota(request, size, location)


def _check_spot(body: Properties, name: str) -> None:
    """Reject upgrade settings that pools of spot machines do not have (hashicorp/terraform-provider-azurerm#31129).

    AKS adds its taint to such pools, and accepts the same taint from the user.
    """
    surge = {"maxSurge", "maxUnavailable"} & (body.get("upgradeSettings") or {}).keys()
    if body.get("scaleSetPriority") == "Spot" and surge:
        raise invalid(f"The pool {name} is of spot machines, which cannot set {' and '.join(sorted(surge))}.")


def size_of(request: Request, location: str) -> Size:
    """Return the pool's size. Raises ArmError if it does not exist, or not in the region."""
    name = str(request.body.get("vmSize"))
    size = request.facts.size(name)
    if size is None:
        nearest = request.facts.nearest_size(name)
        hint = f"Did you mean {nearest}? " if nearest else ""
        raise invalid(f"The VM size of {name} does not exist.", f"{hint}facts.yaml has those that are emulated.")
    if request.facts.zones(size, location) is None:
        raise refused("SkuNotAvailable", size=name, location=location, regions=", ".join(sorted(size.regions or ())))
    return size


def _check_count(body: Properties, name: str) -> None:
    is_system, count = body.get("mode") == "System", body.get("count", 1)
    least = 1 if is_system else 0
    if not least <= count <= _MOST_NODES:
        raise invalid(
            f"The value of parameter agentPoolProfile.count is invalid: {count}. A {'system' if is_system else 'user'} "
            f"pool ({name}) has {least} to {_MOST_NODES} nodes."
        )
    lowest, highest = body.get("minCount"), body.get("maxCount")
    if not body.get("enableAutoScaling"):
        if lowest is not None or highest is not None:
            raise invalid(
                f"minCount and maxCount of the agent pool {name} are given, but enableAutoScaling is not true.",
                "Set enableAutoScaling, or leave minCount and maxCount out.",
            )
    elif lowest is None or highest is None:
        raise invalid(f"The agent pool {name} has enableAutoScaling, but minCount or maxCount is missing.", "Set both.")
    elif not least <= lowest <= count <= highest <= _MOST_NODES:
        raise invalid(
            f"minCount {lowest}, count {count} and maxCount {highest} of the agent pool {name} are invalid: {least} <= "
            f"minCount <= count <= maxCount <= {_MOST_NODES}."
        )


def _check_zones(request: Request, size: Size, location: str) -> None:
    offered = request.facts.zones(size, location) or ()
    wrong = [zone for zone in request.body.get("availabilityZones") or [] if zone not in offered]
    if wrong:
        raise refused(
            "AvailabilityZoneNotSupported",
            zones=", ".join(wrong),
            pool=request.names["agentPoolName"],
            location=location,
            offered=", ".join(offered) or "none",
        )


def _check_labels(body: Properties) -> None:
    for key in body.get("nodeLabels") or {}:
        if key.startswith(_RESERVED_LABELS) and (key, body.get("scaleSetPriority")) != (_SPOT_LABEL, "Spot"):
            raise invalid(f"The node label {key} is invalid: {' and '.join(_RESERVED_LABELS)} are reserved.")
    for taint in body.get("nodeTaints") or []:
        if not _TAINT.fullmatch(taint):
            raise invalid(f"The node taint '{taint}' is invalid: key=value:NoSchedule is expected.")


def _check_proximity(request: Request, location: str) -> None:
    group, name = request.body.get("proximityPlacementGroupID"), request.names["agentPoolName"]
    if not group:
        return
    found = require(request.state, str(group), f"the pool {name} (proximityPlacementGroupID)")
    if found.properties["location"] != location:
        raise invalid(f"The proximity placement group {found.name} is not in {location}, unlike the cluster.")
    if len(request.body.get("availabilityZones") or []) > 1:
        raise invalid(
            f"The pool {name} has a proximity placement group and several zones: with one it has one zone at most."
        )


def _check_reservation(body: Properties, name: str) -> None:
    """Reject every capacity reservation group, because the emulated subscription has none.

    Source of the other rules: learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview, limitations.
    """
    group = body.get("capacityReservationGroupID")
    if not group:
        return
    if body.get("scaleSetPriority") == "Spot" or body.get("proximityPlacementGroupID"):
        excluded = "spot machines and proximity placement groups"
        raise invalid(f"The pool {name} has a capacity reservation group, which excludes {excluded}.")
    raise refused("ReferenceNotFound", id=group, what=f"the pool {name} (capacityReservationGroupID)")


def _check_quota(request: Request, size: Size, location: str) -> None:
    """Raise ArmError if the vCPUs of all pools, which are in one region, exceed a quota with this request."""
    wanted = int(request.body.get("count", 1)) * size.vcpus
    used = [
        (other, int(pool.properties["count"]) * other.vcpus)
        for pool in request.others(POOL)
        if (other := request.facts.size(str(pool.properties["vmSize"])))
    ]
    family = sum(cores for other, cores in used if other.family == size.family)
    for what, limit, taken in (
        (f"family {size.family} ", request.facts.family_quota(size), family),
        ("", request.facts.total_quota, sum(cores for _, cores in used)),
    ):
        if wanted + taken > limit:
            raise refused(
                "ErrCode_InsufficientVCPUQuota",
                wanted=wanted,
                remaining=max(limit - taken, 0),
                what=what,
                location=location,
            )
