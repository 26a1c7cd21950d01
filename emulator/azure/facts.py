"""The facts that the emulated Azure decides by: `facts.yaml`, with what a checkout lays over it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).with_name("facts.yaml")
_ZONES = ("1", "2", "3")


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Identity(_Facts):
    """The subscription's id, its tenant's, and the client and object ids of who runs the program."""

    id: str
    tenant_id: str
    client_id: str
    object_id: str


class Size(_Facts):
    """A VM size. memory: GiB; gpus, infiniband, nvme: devices of one VM; product: the name of its GPUs.

    feature: whether its InfiniBand needs the feature AKSInfinibandSupport; otherwise it needs its absence.
    regions: that offer it, None for all. zones: that do, by region, where not all do.
    """

    family: str
    vcpus: int
    memory: int
    gpus: int = 0
    product: str = ""
    infiniband: int = 0
    nvme: int = 0
    feature: bool = True
    regions: tuple[str, ...] | None = None
    zones: Mapping[str, tuple[str, ...]] = {}


class Taken(_Facts):
    """Names that somebody else has."""

    registries: tuple[str, ...]
    storage_accounts: tuple[str, ...]


class Regions(_Facts):
    """The regions, as `location` names them."""

    with_zones: tuple[str, ...]
    without_zones: tuple[str, ...]


class Quota(_Facts):
    """vCPUs that may be used in a region: in all, and of a family that `families` does not name."""

    total: int
    default: int
    gpu_default: int
    families: Mapping[str, int]


class Kubernetes(_Facts):
    """The versions that AKS offers, patch by patch. default: for a cluster that names none."""

    default: str
    long_term: tuple[str, ...]
    supported: tuple[str, ...]


class AzureFacts(_Facts):
    """What one subscription can see and use. `of` reads it."""

    subscription: Identity
    durations: Mapping[str, Mapping[str, float]]
    retry_after: float
    features: Mapping[str, tuple[str, ...]]
    taken: Taken
    regions: Regions
    sizes: Mapping[str, Size]
    quota: Quota
    kubernetes: Kubernetes
    roles: Mapping[str, str]

    @classmethod
    def of(cls, override: Path) -> AzureFacts:
        """Read `facts.yaml`, with the file `override` laid over it where that exists.

        Raises ValueError when the result does not make sense.
        """
        document = yaml.safe_load(FILE.read_text())
        if override.exists():
            document = _laid_over(document, yaml.safe_load(override.read_text()) or {})
        return cls.model_validate(document)

    def of_subscription(self, subscription: str) -> AzureFacts:
        """Return the same facts, seen from a subscription with another id."""
        return self.model_copy(update={"subscription": self.subscription.model_copy(update={"id": subscription})})

    def duration(self, what: str, operation: str) -> float:
        """Seconds that an operation takes, e.g. `duration("agentPool", "create")`."""
        return self.durations.get(what, {}).get(operation, 0.0)

    def feature(self, namespace: str, name: str) -> bool:
        """Tell whether a provider namespace has a preview feature, in any case of letters."""
        return any(
            name.lower() in map(str.lower, names)
            for key, names in self.features.items()
            if key.lower() == namespace.lower()
        )

    @property
    def locations(self) -> Sequence[str]:
        """The regions, sorted."""
        return sorted([*self.regions.with_zones, *self.regions.without_zones])

    def region(self, location: str) -> str | None:
        """Return the normal form of a location (`West Europe` is `westeurope`), None for an unknown one."""
        name = location.replace(" ", "").lower()
        return name if name in self.locations else None

    def region_zones(self, location: str) -> Sequence[str]:
        """The availability zones of a region."""
        return _ZONES if self.region(location) in self.regions.with_zones else ()

    def size(self, name: str) -> Size | None:
        """Return a VM size by its name, in any case of letters."""
        return next((found for key, found in self.sizes.items() if key.lower() == name.lower()), None)

    def nearest_size(self, name: str) -> str:
        """Return the known size whose name is most like this one, empty when none is."""
        return next(iter(difflib.get_close_matches(name, self.sizes, n=1)), "")

    def zones(self, size: Size, location: str) -> Sequence[str] | None:
        """Return the zones in which a region offers a size, None when it does not offer it at all."""
        region = str(self.region(location))
        if size.regions is not None and region not in size.regions:
            return None
        return size.zones.get(region, self.region_zones(region))

    def family_quota(self, size: Size) -> int:
        """vCPUs that the subscription may use in a region of a size's family."""
        return self.quota.families.get(size.family, self.quota.gpu_default if size.gpus else self.quota.default)

    def patch(self, version: str, *, long_term: bool) -> str | None:
        """Return the full version that `1.34` or `1.34.2` stands for, None when it is not offered."""
        offered = [*(self.kubernetes.long_term if long_term else ()), *self.kubernetes.supported]
        return next((each for each in reversed(offered) if version in (each, each.rpartition(".")[0])), None)


def _laid_over(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    merged = {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
    return {key: value for key, value in merged.items() if value is not None}
