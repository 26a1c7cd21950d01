"""Checking the inputs of a resource: identity, names, namespaces, normal form."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

from emulator.plugin.errors import ProviderError
from emulator.plugin.wire import UNKNOWN, Decoded
from emulator.provider.objects import AUTONAMED, Manifest, Type, is_built_in, metadata, normalized, without_nulls

PROPOSE, ENFORCE, DISABLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Naming:
    """What is known about a resource's name when its inputs give none.

    previous: the name in the old inputs, and autonamed: whether it was made up here. proposed, mode: what the engine's
    autonaming configuration says (PROPOSE, ENFORCE, DISABLE), None without one. seed: makes the made-up name
    repeatable.
    """

    resource_name: str
    exists: bool
    previous: str
    autonamed: bool
    seed: bytes
    proposed: str
    mode: int | None


def identified(inputs: Manifest, kind: Type) -> Manifest:
    """Fill in apiVersion and kind; an object of another kind than the resource type raises ProviderError."""
    for key, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = inputs.get(key)
        if given is None:
            inputs = {**inputs, key: expected}
        elif given is not UNKNOWN and given != expected and given != f"core/{expected}":
            raise ProviderError(
                f"{key} is {given!r}, but the resource type {kind.token} stands for {expected!r}: make them the same"
            )
    return inputs


def checked(decoded: Decoded, kind: Type, naming: Naming) -> Manifest:
    """Return the inputs as the other calls expect them; the very same object when nothing had to change.

    Raises ProviderError for what can never be created.
    """
    if kind.is_list:
        raise ProviderError(f"{kind.token} is a list, which exists in manifests only: declare its items one by one")
    inputs = without_nulls(decoded.plain) if decoded.has_nulls else decoded.plain
    inputs = identified(inputs, kind)
    if not decoded.has_unknowns:
        inputs = normalized(inputs)
    return named(inputs, kind, naming)


def named(inputs: Manifest, kind: Type, naming: Naming) -> Manifest:
    """Give the object a name when the program gave none: the one it has, or a new one."""
    meta = inputs.get("metadata")
    if meta is UNKNOWN or metadata(inputs).get("name"):
        return inputs
    if kind.patch:
        raise ProviderError(f"{kind.token} needs metadata.name: it patches an existing object")
    if metadata(inputs).get("generateName"):
        raise ProviderError(
            "metadata.generateName does not go with server-side apply: set metadata.name, or neither for a "
            "generated name"
        )
    if naming.exists:
        if not naming.autonamed:
            return inputs
        return _with_generated(inputs, naming.previous)
    return _with_generated(inputs, generated_name(naming))


def generated_name(naming: Naming) -> str:
    """Return a new name. Raises ProviderError when the project's configuration allows none."""
    if naming.mode == DISABLE:
        raise ProviderError("metadata.name is required, as autonaming is disabled in the project's configuration")
    if naming.mode is not None and naming.proposed:
        return naming.proposed
    digits = hashlib.sha256(naming.seed).hexdigest()[:8] if naming.seed else os.urandom(4).hex()
    return f"{naming.resource_name}-{digits}"


def _with_generated(inputs: Manifest, name: str) -> Manifest:
    meta: dict[str, Any] = {**metadata(inputs), "name": name}
    annotations = meta.get("annotations", {})
    if annotations is not UNKNOWN:
        meta["annotations"] = {**annotations, AUTONAMED: "true"}
    return {**inputs, "metadata": meta}


def with_namespace(inputs: Manifest, namespace: str) -> Manifest:
    """Put a namespaced object that names no namespace into the given one."""
    meta = inputs.get("metadata")
    if meta is UNKNOWN or metadata(inputs).get("namespace"):
        return inputs
    return {**inputs, "metadata": {**metadata(inputs), "namespace": namespace}}


def removed_kind(kind: Type) -> str:
    """A sentence when the kind is of a version that no supported Kubernetes serves any more, else nothing."""
    if is_built_in(kind.api_version) and (kind.group, kind.version) in _REMOVED:
        return f"{kind.api_version}/{kind.kind} was removed in Kubernetes {_REMOVED[kind.group, kind.version]}"
    return ""


# Source: the Kubernetes deprecated API migration guide; whole group versions only.
_REMOVED = {
    ("extensions", "v1beta1"): "1.22",
    ("apps", "v1beta1"): "1.16",
    ("apps", "v1beta2"): "1.16",
    ("rbac.authorization.k8s.io", "v1beta1"): "1.22",
    ("rbac.authorization.k8s.io", "v1alpha1"): "1.23",
    ("apiextensions.k8s.io", "v1beta1"): "1.22",
    ("batch", "v1beta1"): "1.25",
    ("policy", "v1beta1"): "1.25",
    ("networking.k8s.io", "v1beta1"): "1.22",
    ("autoscaling", "v2beta1"): "1.25",
    ("autoscaling", "v2beta2"): "1.26",
}
