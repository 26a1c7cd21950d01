"""The facts that the emulated Azure decides by: `facts.yaml`, with what a checkout lays over it."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("facts.yaml")


@dataclass(frozen=True, slots=True)
class Size:
    """A VM size. memory: GiB; gpus, infiniband, nvme: devices of one VM; product: the name of its GPUs.

    feature: whether its InfiniBand needs the feature AKSInfinibandSupport; otherwise it needs its absence.
    """

    name: str
    family: str
    vcpus: int
    memory: int
    gpus: int = 0
    product: str = ""
    infiniband: int = 0
    nvme: int = 0
    feature: bool = True


class AzureFacts:
    """Lookups in those facts. `of` reads them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    @classmethod
    def of(cls, override: Path | None = None) -> AzureFacts:
        """Read `facts.yaml`, with the file `override` laid over it where that exists."""
        document = _shipped()
        if override is not None and override.exists():
            document = _laid_over(document, yaml.safe_load(override.read_text()) or {})
        return cls(document)

    def of_subscription(self, subscription: str) -> AzureFacts:
        """Return the same facts, seen from a subscription with another id."""
        return AzureFacts(_laid_over(self._document, {"subscription": {"id": subscription}}))

    @property
    def subscription(self) -> str:
        """The subscription's id."""
        return str(self._document["subscription"]["id"])

    @property
    def tenant(self) -> str:
        """The id of the directory (tenant)."""
        return str(self._document["subscription"]["tenantId"])

    @property
    def client(self) -> Mapping[str, str]:
        """The identity that runs the program: clientId, objectId, subscriptionId, tenantId."""
        found = self._document["subscription"]
        return {
            "clientId": found["clientId"],
            "objectId": found["objectId"],
            "subscriptionId": found["id"],
            "tenantId": found["tenantId"],
        }

    def duration(self, what: str, operation: str = "") -> float:
        """Seconds that an operation takes, e.g. `duration("agentPool", "create")`."""
        found = self._document["durations"].get(what, self._document["durations"]["other"])
        seconds = found.get(operation, 0.0) if isinstance(found, Mapping) else found
        return float(seconds) * float(self._document["durations"]["scale"])

    @property
    def retry_after(self) -> float:
        """Seconds that a throttled caller is told to wait."""
        return float(self._document["durations"]["retryAfter"])

    def features(self, namespace: str) -> Sequence[str]:
        """The preview features of a provider namespace, in any case of letters."""
        return next((v for k, v in self._document["features"].items() if k.lower() == namespace.lower()), ())

    @property
    def features_always_there(self) -> bool:
        """Whether a feature that was never registered can be read all the same, as NotRegistered."""
        return bool(self._document["features"]["alwaysThere"])

    def taken(self, what: str, name: str) -> bool:
        """Tell whether somebody else has the global name."""
        return name.lower() in (str(each).lower() for each in self._document["taken"][what])

    @property
    def regions(self) -> Sequence[str]:
        """The regions, as `location` names them."""
        return tuple(self._document["regions"])

    def region(self, location: str) -> str | None:
        """Return the normal form of a location (`West Europe` is `westeurope`), None for an unknown one."""
        name = location.replace(" ", "").lower()
        return name if name in self._document["regions"] else None

    def region_zones(self, location: str) -> Sequence[str]:
        """The availability zones of a region."""
        return tuple(str(zone) for zone in range(1, self._document["regions"][self.region(location)] + 1))

    def size(self, name: str) -> Size | None:
        """Return a VM size by its name, in any case of letters."""
        for key, found in self._document["sizes"].items():
            if key.lower() == name.lower():
                return Size(key, **found)
        return None

    def nearest_size(self, name: str) -> str:
        """Return the known size whose name is most like this one, empty when none is."""
        return next(iter(difflib.get_close_matches(name, self._document["sizes"], n=1)), "")

    def zones(self, size: Size, location: str) -> Sequence[str] | None:
        """Return the zones in which a region offers a size, None when it does not offer it at all."""
        region = str(self.region(location))
        offered = self._document["offered"].get(size.name)
        if offered is None:
            return None if size.gpus else self.region_zones(region)
        if region not in offered["regions"]:
            return None
        return tuple((offered.get("zones") or {}).get(region, self.region_zones(region)))

    def offering(self, size: Size) -> list[str]:
        """The regions that offer a size."""
        return [name for name in self.regions if self.zones(size, name) is not None]

    def quota(self, family: str, location: str) -> int:
        """vCPUs that the subscription may use of a family in a region."""
        quota = self._document["quota"]
        own = (quota["regions"] or {}).get(self.region(location)) or {}
        gpu = any(found.get("gpus") for found in self._document["sizes"].values() if found["family"] == family)
        default = quota["gpuDefault"] if gpu else quota["default"]
        return int(own.get(family, quota["families"].get(family, default)))

    def total_quota(self, location: str) -> int:
        """vCPUs that the subscription may use in a region altogether."""
        quota = self._document["quota"]
        own = (quota["regions"] or {}).get(self.region(location)) or {}
        return int(own.get("total", quota["total"]))

    @property
    def default_version(self) -> str:
        """The Kubernetes version of a cluster that names none."""
        return str(self._document["kubernetes"]["default"])

    def versions(self, *, long_term: bool) -> list[str]:
        """The Kubernetes versions offered, patch by patch."""
        return [
            str(patch)
            for found in self._document["kubernetes"]["versions"].values()
            if long_term or not found.get("lts")
            for patch in found["patches"]
        ]

    def patch(self, version: str, *, long_term: bool) -> str | None:
        """Return the full version that `1.34` or `1.34.2` stands for, None when it is not offered."""
        offered = self.versions(long_term=long_term)
        if version in offered:
            return version
        patches = [each for each in offered if each.rpartition(".")[0] == version]
        return patches[-1] if patches else None

    def role(self, definition: str) -> str | None:
        """Return the name of a built-in role by its definition's id, None when there is none."""
        found = self._document["roles"].get(definition.lower())
        return str(found) if found else None


@functools.cache
def _shipped() -> Any:
    return yaml.safe_load(FILE.read_text())


def _laid_over(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    merged = {key: _laid_over(below[key], above[key]) if key in above else below[key] for key in below}
    merged |= {key: value for key, value in above.items() if key not in below}
    return {key: value for key, value in merged.items() if value is not None}
