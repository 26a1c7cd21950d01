"""The decision between no change, update and replace.

The live object of the state, pruned to the shape of the old inputs, is compared with the new inputs, so that what the
cluster adds is no difference and what somebody changed by hand is one. The recorded kinds (add, update, delete, each
perhaps replacing) and paths are those of the official provider, `provider/pkg/provider/provider.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from emulator.plugin import paths
from emulator.plugin.paths import Path
from emulator.plugin.wire import UNKNOWN
from emulator.provider import replacement
from emulator.provider.objects import AUTONAMED, Manifest, is_true, metadata, parse_id

ADD, DELETE, UPDATE = "ADD", "DELETE", "UPDATE"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One differing property. kind: ADD, DELETE or UPDATE; of_inputs: the difference lies in the inputs alone."""

    kind: str
    replaces: bool
    of_inputs: bool


@dataclass(slots=True)
class Difference:
    """What an update would have to do. changes: by rendered property path."""

    changes: dict[str, Change] = field(default_factory=dict)
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        """The paths that force a replacement."""
        return [
            path
            for path, change in self.changes.items()
            if change.replaces or (change.kind == DELETE and path == "metadata")
        ]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the provider resource says about mutability."""

    config_map_mutable: bool
    secret_mutable: bool


def compare(
    live: Manifest, live_id: str, old: Manifest, new: Manifest, *, patch: bool, rules: Rules, ignore: list[str]
) -> Difference:
    """Compare the new inputs with the pruned live object.

    live: the live object pruned to `old`, the old inputs. live_id: its ID; the API server always fills the namespace
    in, so the ID also tells whether the kind is namespaced. Both inputs are normalized. ignore: the property paths of
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
    difference = compare_maps(live, new, old, forcing, ignore)
    difference.delete_before_replace = (
        bool(difference.replaces)
        and not is_true(new, AUTONAMED)
        and metadata(new).get("name") == metadata(live).get("name")
        and _namespace(new) == live_namespace
    )
    return difference


def compare_maps(
    live: dict[str, Any], new: dict[str, Any], old: dict[str, Any], forcing: tuple[Path, ...], ignore: list[str]
) -> Difference:
    """Compare property maps: `new` with `live`, which is pruned to `old`. forcing: the paths that replace."""
    found: dict[Path, Change] = {}
    _compare_maps((), live, new, old, forcing, found)
    ignored = [paths.parse(path) for path in ignore]
    difference = Difference()
    for path, change in found.items():
        if not any(paths.contains(outer, path) for outer in ignored):
            difference.changes[paths.render(path)] = change
    return difference


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


def _compare_maps(
    path: Path,
    live: dict[str, Any],
    new: dict[str, Any],
    old: Any,
    forcing: tuple[Path, ...],
    found: dict[Path, Change],
) -> None:
    for key, wanted in new.items():
        had = live.get(key, _MISSING)
        if had == wanted:
            continue
        below = old.get(key, _MISSING) if isinstance(old, dict) else _MISSING
        _compare((*path, key), had, wanted, below, forcing, found)
    for key in live:
        # Only what the old inputs had can have been taken out of them.
        if key not in new and isinstance(old, dict) and key in old:
            _record((*path, key), DELETE, None, forcing, found)


def _compare(path: Path, had: Any, wanted: Any, old: Any, forcing: tuple[Path, ...], found: dict[Path, Change]) -> None:
    if had is _MISSING:
        _record(path, ADD, wanted, forcing, found)
    elif isinstance(wanted, dict) and isinstance(had, dict):
        _compare_maps(path, had, wanted, old, forcing, found)
    elif isinstance(wanted, list) and isinstance(had, list):
        for index, (mine, theirs) in enumerate(zip(had, wanted, strict=False)):
            if mine != theirs:
                below = old[index] if isinstance(old, list) and index < len(old) else _MISSING
                _compare((*path, index), mine, theirs, below, forcing, found)
        for index in range(len(had), len(wanted)):
            _record((*path, index), ADD, wanted[index], forcing, found)
        for index in range(len(wanted), len(had)):
            _record((*path, index), DELETE, None, forcing, found)
    else:
        _record(path, UPDATE, wanted, forcing, found)


def _record(path: Path, kind: str, value: Any, forcing: tuple[Path, ...], found: dict[Path, Change]) -> None:
    found[path] = Change(kind, replacement.forces(path, value, forcing), of_inputs=kind == DELETE)
