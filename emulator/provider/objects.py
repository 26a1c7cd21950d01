"""Kubernetes objects as plain dicts: identity, annotations, and bringing them to a comparable form."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from emulator.plugin.errors import ProviderError
from emulator.provider import definitions

Manifest = dict[str, Any]

RELEASE = "kubernetes:helm.sh/v3:Release"

AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
REPLACE_UNREADY = "pulumi.com/replaceUnready"
PATCH_FORCE = "pulumi.com/patchForce"
PATCH_FIELD_MANAGER = "pulumi.com/patchFieldManager"
DELETION_PROPAGATION = "pulumi.com/deletionPropagationPolicy"

# Groups that the API server serves itself; objects of every other group are custom resources.
_BUILT_IN_GROUPS = frozenset(
    {
        "",
        "core",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)

# Set by the API server only (ObjectMeta, k8s.io/apimachinery/pkg/apis/meta/v1/types.go).
READ_ONLY_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)


@dataclass(frozen=True, slots=True)
class Type:
    """A resource type of the engine, `kubernetes:<group>/<version>:<kind>`, with the core group as `core`.

    kind: without the suffix `Patch` for Patch resources, whose `patch` is true.
    """

    token: str
    group: str
    version: str
    kind: str
    patch: bool

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`: as objects spell it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_list(self) -> bool:
        """A `List` kind of the API server itself; those exist for manifests, not as resources."""
        return self.group in _BUILT_IN_GROUPS and self.kind.endswith("List")

    @classmethod
    def of_urn(cls, urn: str) -> Type:
        """Read the type out of a URN `urn:pulumi:<stack>::<project>::<parents$type>::<name>`."""
        return cls.of_token(urn.split("::", 3)[2].rsplit("$", 1)[-1])

    @classmethod
    def of_token(cls, token: str) -> Type:
        """Raise ProviderError for tokens that are no plain Kubernetes kind."""
        package, _, rest = token.partition(":")
        module, _, kind = rest.partition(":")
        group, _, version = module.partition("/")
        if package != "kubernetes" or not version or not kind or "/" in version:
            raise ProviderError(
                f"{token!r} is not a resource type of this provider: it must read kubernetes:<group>/<version>:<Kind>, "
                "with core/v1 for the core group"
            )
        if group in ("helm.sh", "yaml", "kustomize") and token != RELEASE:
            raise ProviderError(not_supported(token))
        group = "" if group == "core" else group
        is_patch = kind.endswith("Patch") and len(kind) > 5 and group in _BUILT_IN_GROUPS
        return cls(token, group, version, kind.removesuffix("Patch") if is_patch else kind, is_patch)


def not_supported(what: str) -> str:
    """The sentence for everything that only the official plugin can do."""
    return (
        f"{what} is not supported by this stand-in for the Kubernetes provider: use the official plugin "
        "(unset PULUMI_DEBUG_PROVIDERS) or declare the objects themselves"
    )


def is_built_in(api_version: str) -> bool:
    """Tell whether the API server itself defines the group of an `apiVersion`."""
    group = api_version.rpartition("/")[0]
    return group in _BUILT_IN_GROUPS


def group_of(manifest: Manifest) -> str:
    """The API group, empty for core."""
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    return "" if group == "core" else group


def metadata(manifest: Manifest) -> dict[str, Any]:
    """The metadata, or an empty dict that is not part of the object."""
    found = manifest.get("metadata")
    return found if isinstance(found, dict) else {}


def annotation(manifest: Manifest, key: str) -> str:
    """The value of an annotation, or an empty string."""
    annotations = metadata(manifest).get("annotations")
    value = annotations.get(key) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def is_true(manifest: Manifest, key: str) -> bool:
    """Tell whether an annotation reads `true`."""
    return annotation(manifest, key) == "true"


def object_id(manifest: Manifest) -> str:
    """`namespace/name`, or `name` for objects without a namespace: the engine's resource ID."""
    meta = metadata(manifest)
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


def parse_id(identifier: str) -> tuple[str, str]:
    """Split a resource ID into namespace (perhaps empty) and name."""
    namespace, _, name = identifier.rpartition("/")
    if not name or "/" in namespace:
        raise ProviderError(f"{identifier!r} is no ID of a Kubernetes object: it must read name or namespace/name")
    return namespace, name


def is_crd(manifest: Manifest) -> bool:
    """Tell whether the object defines a custom resource."""
    return manifest.get("kind") == "CustomResourceDefinition" and group_of(manifest) == "apiextensions.k8s.io"


def is_secret(manifest: Manifest) -> bool:
    """Tell whether the object is a core Secret."""
    return manifest.get("kind") == "Secret" and manifest.get("apiVersion") in ("v1", "core/v1")


def prune(live: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """Keep of a live object what has a counterpart in `shape`, with the live values.

    Lists are paired by position and cut to the length of the shape: what others append is not ours.
    """
    result = {}
    for key, value in live.items():
        if key in shape:
            result[key] = _prune_value(value, shape[key])
    return result


def _prune_value(value: Any, shape: Any) -> Any:
    if isinstance(value, dict) and isinstance(shape, dict):
        return prune(value, shape)
    if isinstance(value, list) and isinstance(shape, list):
        if not value or not shape:
            return []
        for container in (dict, list):
            if isinstance(value[0], container) != isinstance(shape[0], container):
                return value
        return [_prune_value(each, wanted) for each, wanted in zip(value, shape, strict=False)]
    return value


def without_nulls(value: Any) -> Any:
    """Return the value without null map entries, the very same object when there are none.

    The API server drops them, so they would show up as differences for ever. Items of lists stay.
    """
    if isinstance(value, dict):
        changed = {key: without_nulls(item) for key, item in value.items() if item is not None}
        if len(changed) == len(value) and all(changed[key] is item for key, item in value.items()):
            return value
        return changed
    if isinstance(value, list):
        items = [without_nulls(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def normalized(manifest: Manifest) -> Manifest:
    """Bring an object to the form in which the API server would return it, as far as that is known.

    Drops read-only metadata; for built-in kinds makes quantities canonical; for Secrets turns `stringData` into `data`;
    for CustomResourceDefinitions see `definitions`. Returns the very same object when nothing had to change.
    """
    meta = manifest.get("metadata")
    if isinstance(meta, dict) and any(key in meta for key in READ_ONLY_METADATA):
        meta = {key: value for key, value in meta.items() if key not in READ_ONLY_METADATA}
        manifest = {**manifest, "metadata": meta}
    if is_crd(manifest):
        return definitions.normalized(manifest)
    if is_secret(manifest):
        return _normalized_secret(manifest)
    if is_built_in(str(manifest.get("apiVersion") or "")):
        result: Manifest = canonical_quantities(manifest)
        return result
    return manifest


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
    """Rewrite the quantities of a built-in object in canonical form; the very same object when they all are."""
    if isinstance(value, dict):
        changed: dict[str, Any] | None = None
        for key, item in value.items():
            if isinstance(item, dict) and (
                (key in _QUANTITY_MAPS and parent in _QUANTITY_PARENTS)
                or (key in _QUANTITY_MAPS_OF_STATUS and parent == "status")
            ):
                new: Any = {name: canonical_quantity(quantity) for name, quantity in item.items()}
                new = item if new == item and all(type(new[name]) is type(item[name]) for name in item) else new
            elif key == "sizeLimit" and parent == "emptyDir":
                new = canonical_quantity(item)
            elif isinstance(item, dict | list):
                new = canonical_quantities(item, key)
            else:
                continue
            if new is not item:
                if changed is None:
                    changed = dict(value)
                changed[key] = new
        return value if changed is None else changed
    if isinstance(value, list):
        items = [canonical_quantities(item, parent) if isinstance(item, dict | list) else item for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)\Z")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def canonical_quantity(value: Any) -> Any:
    """Return a quantity as the API server would write it: no fraction, the largest suffix that keeps it exact.

    Source of the rules: k8s.io/apimachinery/pkg/api/resource/quantity.go. What does not parse is returned as it is, for
    the API server to refuse.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    match = _QUANTITY.match(str(value))
    if match is None:
        return value
    digits, exponent, suffix = match.groups()
    number = Decimal(digits)
    if exponent:
        return _canonical_exponent(number * Decimal(10) ** int(exponent[1:]))
    suffix = suffix or ""
    if suffix.endswith("i"):
        number *= Decimal(1024) ** _BINARY.index(suffix)
        if number == number.to_integral_value() and abs(number) >= 1024:
            return _largest_suffix(number, _BINARY, Decimal(1024), 0)
        # Binary values below 1024 or with a fraction are written with a decimal suffix.
        return _largest_suffix(number, _DECIMAL, Decimal(1000), 3)
    number *= Decimal(1000) ** (_DECIMAL.index(suffix) - 3)
    return _largest_suffix(number, _DECIMAL, Decimal(1000), 3)


def _largest_suffix(number: Decimal, suffixes: tuple[str, ...], base: Decimal, unit: int) -> str:
    if number == 0:
        return "0"
    for index in range(len(suffixes) - 1, -1, -1):
        scaled = number / base ** (index - unit)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffixes[index]}"
    smallest = number / base ** (0 - unit)
    return f"{int(smallest.to_integral_value(rounding='ROUND_UP'))}{suffixes[0]}"


def _canonical_exponent(number: Decimal) -> str:
    if number == 0:
        return "0"
    for power in range(18, -10, -3):
        scaled = number / Decimal(10) ** power
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}e{power}" if power else str(int(scaled))
    return str(number)


def to_json(manifest: Manifest) -> bytes:
    """Encode an object for the API server."""
    return json.dumps(manifest, separators=(",", ":")).encode()
