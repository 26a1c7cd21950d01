"""The facts that the emulated Azure uses: `facts.yaml`, with the overrides of a checkout."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).with_name("facts.yaml")
_ZONES = ("1", "2", "3")


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Size(_Facts):
    """A VM size. memory: GiB. gpus, infiniband, nvme: devices of one VM. product: the name of its GPUs.

    family: the quota that it counts against.
    feature: whether its InfiniBand needs the feature AKSInfinibandSupport, or needs its absence.
    regions: regions that offer it, None for all.
    zones: zones that offer it, by region, if not all do.
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


class AzureFacts(_Facts):
    """What one subscription can see and use. `of` reads it. `facts.yaml` describes each field."""

    subscription_id: str
    tenant_id: str
    client_id: str
    object_id: str
    durations: Mapping[str, Mapping[str, float]]
    retry_after: float
    features: Mapping[str, tuple[str, ...]]
    prepared_features: Mapping[str, tuple[str, ...]]
    taken_registries: tuple[str, ...]
    taken_storage_accounts: tuple[str, ...]
    regions_with_zones: tuple[str, ...]
    regions_without_zones: tuple[str, ...]
    sizes: Mapping[str, Size]
    total_quota: int
    default_quota: int
    default_gpu_quota: int
    family_quotas: Mapping[str, int]
    default_version: str
    versions: tuple[str, ...]
    long_term_versions: tuple[str, ...]
    roles: Mapping[str, str]

    @classmethod
    def of(cls, override: Path) -> AzureFacts:
        """Read `facts.yaml`, merged with the file `override` if it exists.

        Raises ValueError if the result is invalid.
        """
        document = yaml.safe_load(override.read_text()) if override.exists() else None
        return cls.model_validate(_laid_over(_shipped(), document or {}))

    def of_subscription(self, subscription: str) -> AzureFacts:
        """Return the same facts for a subscription with another id."""
        return self.model_copy(update={"subscription_id": subscription})

    def duration(self, what: str, operation: str) -> float:
        """Return the seconds that an operation takes, e.g. `duration("agentPool", "create")`."""
        return self.durations.get(what, {}).get(operation, 0.0)

    def has_feature(self, namespace: str, name: str) -> bool:
        """Tell whether a provider namespace has a preview feature, ignoring case."""
        known = {f"{key}/{each}".lower() for key, names in self.features.items() for each in names}
        return f"{namespace}/{name}".lower() in known

    def is_prepared(self, namespace: str, name: str) -> bool:
        """Tell whether the subscription registered a preview feature long ago, by Azure's spelling of the names."""
        return name in self.prepared_features.get(namespace, ())

    @property
    def regions(self) -> Sequence[str]:
        """The names of the regions, in the form of `location`."""
        return sorted([*self.regions_with_zones, *self.regions_without_zones])

    def region(self, location: str) -> str | None:
        """Return the normal form of a location (`westeurope` for `West Europe`), None for an unknown one."""
        name = location.replace(" ", "").lower()
        return name if name in self.regions else None

    def region_zones(self, location: str) -> Sequence[str]:
        """Return the availability zones of a region."""
        return _ZONES if self.region(location) in self.regions_with_zones else ()

    def size(self, name: str) -> Size | None:
        """Return a VM size by its name, ignoring case."""
        return next((found for key, found in self.sizes.items() if key.lower() == name.lower()), None)

    def nearest_size(self, name: str) -> str:
        """Return the known size with the most similar name, empty if none is similar."""
        return next(iter(difflib.get_close_matches(name, self.sizes, n=1)), "")

    def zones(self, size: Size, location: str) -> Sequence[str] | None:
        """Return the zones of a region that offer a size, None if the region does not offer it."""
        region = str(self.region(location))
        if size.regions is not None and region not in size.regions:
            return None
        return size.zones.get(region, self.region_zones(region))

    def family_quota(self, size: Size) -> int:
        """Return the vCPUs of a size's family that the subscription may use in a region."""
        return self.family_quotas.get(size.family, self.default_gpu_quota if size.gpus else self.default_quota)

    def patch(self, version: str, *, long_term: bool) -> str | None:
        """Return the full version for `1.34` or `1.34.2`, None if it is not offered."""
        offered = [*(self.long_term_versions if long_term else ()), *self.versions]
        return next((each for each in reversed(offered) if version in (each, each.rpartition(".")[0])), None)


@functools.cache
def _shipped() -> Any:
    return yaml.safe_load(FILE.read_text())


def _laid_over(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    merged = {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
    return {key: value for key, value in merged.items() if value is not None}
