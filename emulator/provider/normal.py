"""Kubernetes objects in the form in which the API server returns them, so that they compare."""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import format_quantity, parse_quantity

from emulator.provider import definitions
from emulator.provider.objects import READ_ONLY_METADATA, Manifest, is_built_in, is_crd, is_secret


def normalized(manifest: Manifest) -> Manifest:
    """Bring an object to the form in which the API server would return it, as far as that is known.

    Drops read-only metadata; for built-in kinds makes quantities canonical; for Secrets turns `stringData` into `data`;
    for CustomResourceDefinitions see `definitions.normalized`. Returns the very same object when nothing had to change.
    """
    result = manifest
    meta = manifest.get("metadata")
    if isinstance(meta, dict):
        meta = {key: value for key, value in meta.items() if key not in READ_ONLY_METADATA}
        result = {**manifest, "metadata": meta}
    if is_crd(manifest):
        result = definitions.normalized(result)
    elif is_secret(manifest):
        result = _normalized_secret(result)
    elif is_built_in(str(manifest.get("apiVersion") or "")):
        result = canonical_quantities(result)
    return manifest if result == manifest else result


def _normalized_secret(manifest: Manifest) -> Manifest:
    strings = manifest.get("stringData")
    data = manifest.get("data")
    if isinstance(strings, dict) and strings and all(isinstance(value, str) for value in strings.values()):
        merged = dict(data) if isinstance(data, dict) else {}
        merged.update({key: base64.b64encode(value.encode()).decode() for key, value in strings.items()})
        return {**{key: value for key, value in manifest.items() if key != "stringData"}, "data": merged}
    if isinstance(data, dict) and data:
        canonical = {key: _canonical_base64(value) for key, value in data.items()}
        return manifest if canonical == data else {**manifest, "data": canonical}
    return manifest


def _canonical_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64encode(base64.b64decode("".join(value.split()), validate=True)).decode()
    except binascii.Error:
        return value


# Maps of built-in kinds whose values are quantities (ResourceList, ResourceRequirements, LimitRangeItem in
# k8s.io/api/core/v1/types.go; PersistentVolumeSpec.Capacity; ResourceQuotaSpec.Hard).
_QUANTITY_MAPS = frozenset(
    {"limits", "requests", "hard", "capacity", "min", "max", "default", "defaultRequest", "maxLimitRequestRatio"}
)
_QUANTITY_MAPS_OF_STATUS = frozenset({"capacity", "allocatable"})
_QUANTITY_PARENTS = frozenset({"resources", "spec", "limits", "status"})


def canonical_quantities(value: Any, parent: str = "") -> Any:
    """Return a built-in object with its quantities in canonical form. parent: the key of the map or list in `value`."""
    if isinstance(value, list):
        return [canonical_quantities(item, parent) for item in value]
    if not isinstance(value, dict):
        return value
    if parent == "emptyDir" and "sizeLimit" in value:
        return {**value, "sizeLimit": canonical_quantity(value["sizeLimit"])}
    return {
        key: {name: canonical_quantity(quantity) for name, quantity in item.items()}
        if isinstance(item, dict) and _holds_quantities(key, parent)
        else canonical_quantities(item, key)
        for key, item in value.items()
    }


def _holds_quantities(key: str, parent: str) -> bool:
    if parent == "status" and key in _QUANTITY_MAPS_OF_STATUS:
        return True
    return parent in _QUANTITY_PARENTS and key in _QUANTITY_MAPS


_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")


def canonical_quantity(value: Any) -> Any:
    """Return a quantity as the API server would write it: no fraction, the largest suffix that keeps it exact.

    Source of the rules: k8s.io/apimachinery/pkg/api/resource/quantity.go. What does not parse is returned as it is, for
    the API server to refuse.
    """
    if isinstance(value, bool) or _QUANTITY.fullmatch(str(value)) is None:
        return value
    number = parse_quantity(str(value))
    if number == 0:
        return "0"
    if re.search(r"[eE][+-]?\d", str(value)):
        for power in range(18, -10, -3):
            if number % Decimal(10) ** power == 0:
                return f"{int(number / Decimal(10) ** power)}" + (f"e{power}" if power else "")
        return str(number)
    # Binary values below 1024 or with a fraction are written with a decimal suffix.
    binary = str(value).endswith("i") and abs(number) >= 1024 and number == int(number)
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki") if binary else ("E", "P", "T", "G", "M", "k", "", "m", "u", "n"):
        scaled = Decimal(format_quantity(number, suffix).removesuffix(suffix))
        if scaled == int(scaled):
            return f"{int(scaled)}{suffix}"
    return f"{int(scaled.to_integral_value(rounding='ROUND_UP'))}n"
