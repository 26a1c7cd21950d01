"""Kubernetes objects as plain dicts: identity, annotations, and bringing them to a comparable form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.plugin.errors import ProviderError

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
    """Return the sentence for everything that only the official plugin can do."""
    return (
        f"{what} is not supported by this emulated Kubernetes provider: use the official plugin "
        "(unset PULUMI_DEBUG_PROVIDERS) or declare the objects themselves"
    )


def is_built_in(api_version: str) -> bool:
    """Tell whether the API server itself defines the group of an `apiVersion`."""
    group = api_version.rpartition("/")[0]
    return group in _BUILT_IN_GROUPS


def group_of(manifest: Manifest) -> str:
    """Return the API group, empty for core."""
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    return "" if group == "core" else group


def metadata(manifest: Manifest) -> dict[str, Any]:
    """Return the metadata, or an empty dict that is not part of the object."""
    found = manifest.get("metadata")
    return found if isinstance(found, dict) else {}


def annotation(manifest: Manifest, key: str) -> str:
    """Return the value of an annotation, or an empty string."""
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
