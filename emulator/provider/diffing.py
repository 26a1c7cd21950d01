"""The decision between no change, update and replace.

The live object of the state, pruned to the shape of the old inputs, is compared with the new inputs, so that what the
cluster adds is no difference and what somebody changed by hand is one. The recorded kinds (add, update, delete, each
perhaps replacing) and paths are those of the official provider, `provider/pkg/provider/provider.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emulator.plugin.diffing import DELETE, Change, Difference, differences, not_ignored
from emulator.plugin.paths import Path
from emulator.plugin.wire import UNKNOWN
from emulator.provider import replacement
from emulator.provider.objects import AUTONAMED, Manifest, is_true, metadata, parse_id


@dataclass(frozen=True, slots=True)
class Rules:
    """What the provider resource says about mutability."""

    config_map_mutable: bool
    secret_mutable: bool


def compare(
    live: Manifest, live_id: str, new: Manifest, *, patch: bool, rules: Rules, ignore: Sequence[str]
) -> Difference:
    """Compare the new inputs with the pruned live object.

    live: the live object pruned to the old inputs. live_id: its ID; the API server always fills the namespace in, so
    the ID also tells whether the kind is namespaced. The new inputs are normalized. ignore: the property paths of
    `ignoreChanges`.
    """
    live_namespace, live_name = parse_id(live_id)
    live = _with_metadata(live, "namespace", live_namespace)
    new = _with_metadata(new, "namespace", _namespace(new) or "default" if live_namespace else "")
    if metadata(new).get("name"):
        # A name that the API server generated may be written into the program later.
        live = _with_metadata(live, "name", live_name)
    for key in ("apiVersion", "kind"):
        if key not in live and key in new:
            live = {**live, key: new[key]}
    if live == new:
        return Difference()
    forcing = replacement.forcing_paths(
        new, patch=patch, config_map_mutable=rules.config_map_mutable, secret_mutable=rules.secret_mutable
    )
    found = compare_maps(live, new, forcing, ignore)
    found.delete_before_replace = (
        bool(found.replaces)
        and not is_true(new, AUTONAMED)
        and metadata(new).get("name") == metadata(live).get("name")
        and _namespace(new) == live_namespace
    )
    return found


def compare_maps(live: Any, new: Any, forcing: tuple[Path, ...], ignore: Sequence[str]) -> Difference:
    """Compare what is recorded, pruned to the old inputs, with the new ones. forcing: the paths that replace."""
    changes = {
        path: Change(kind, replacement.forces(path, value, forcing), of_inputs=kind == DELETE)
        for path, kind, value in differences(live, new)
    }
    return Difference(not_ignored(changes, ignore))


def _namespace(manifest: Manifest) -> Any:
    return metadata(manifest).get("namespace") or ""


def _with_metadata(manifest: Manifest, key: str, value: Any) -> Manifest:
    meta = manifest.get("metadata") or {}
    if meta is UNKNOWN or (meta.get(key) or "") == value:
        return manifest
    meta = {name: item for name, item in meta.items() if name != key}
    if value:
        meta[key] = value
    return {**manifest, "metadata": meta}
