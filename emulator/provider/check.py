"""Checking the inputs of a resource: identity, names, namespaces, normal form."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from emulator.plugin.errors import ProviderError
from emulator.plugin.provider import DISABLE, Naming
from emulator.plugin.wire import UNKNOWN, Properties
from emulator.provider.normal import normalized
from emulator.provider.objects import (
    AUTONAMED,
    REPLACE_UNREADY,
    Manifest,
    Type,
    annotation,
    metadata,
    not_supported,
    without_nulls,
)


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


def checked(olds: Properties, news: Properties, kind: Type, naming: Naming) -> Manifest:
    """Return the new inputs as the other calls expect them; `news.plain` itself when nothing had to change.

    olds: the inputs of an existing resource, empty for a new one. Raises ProviderError for what can never be created.
    """
    if kind.is_list:
        raise ProviderError(f"{kind.token} is a list, which exists in manifests only: declare its items one by one")
    if annotation(news.plain, REPLACE_UNREADY):
        raise ProviderError(not_supported(f"the annotation {REPLACE_UNREADY}"))
    inputs = without_nulls(news.plain) if news.has_nulls else news.plain
    inputs = identified(inputs, kind)
    if not news.has_unknowns:
        inputs = normalized(inputs)
    return named(inputs, olds, kind, naming)


def named(inputs: Manifest, olds: Properties, kind: Type, naming: Naming) -> Manifest:
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
    if not olds:
        return _with_generated(inputs, generated_name(naming))
    if olds.text("metadata", "annotations", AUTONAMED) != "true":
        return inputs
    return _with_generated(inputs, olds.text("metadata", "name"))


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
