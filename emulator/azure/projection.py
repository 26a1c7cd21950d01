"""The provider's view of inputs and outputs: previews, differences, and the inputs after a refresh.

This follows the official provider (https://github.com/pulumi/pulumi-azure-native, provider/pkg/provider). A difference
is one between the old and the new inputs. A refresh compares the new outputs with the recorded ones and copies the
differences into the inputs, so that defaults of the service are not drift.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.azure.schema import Field, Shape
from emulator.azure.services.base import Kind
from emulator.azure.store import Properties
from emulator.plugin.diffing import Change, differences, not_ignored
from emulator.plugin.wire import UNKNOWN
from runner.properties import Path


def previewed(inputs: Mapping[str, Any], outputs: Mapping[str, Field]) -> Properties:
    """Return the outputs that the inputs already show, UNKNOWN for the others."""
    return {
        name: _previewed(inputs[name], field.shape) if inputs.get(name) is not None else UNKNOWN
        for name, field in outputs.items()
    }


def _previewed(value: Any, shape: Shape) -> Any:
    if isinstance(value, dict) and shape.kind == "object":
        return previewed(value, shape.fields)
    if isinstance(value, list) and shape.kind == "list" and shape.of is not None:
        return [_previewed(each, shape.of) for each in value]
    if isinstance(value, dict) and shape.kind == "map" and shape.of is not None:
        return {key: _previewed(each, shape.of) for key, each in value.items()}
    # A set of ids in the inputs is a map in the outputs.
    return UNKNOWN if isinstance(value, list) and shape.kind == "map" else value


def projected(outputs: Mapping[str, Any], inputs: Mapping[str, Field]) -> Properties:
    """Return the part of the outputs that could be inputs."""
    return {name: _projected(outputs[name], field.shape) for name, field in inputs.items() if name in outputs}


def _projected(value: Any, shape: Shape) -> Any:
    if isinstance(value, dict) and shape.kind == "object":
        return projected(value, shape.fields)
    if isinstance(value, dict) and shape.kind == "list":
        return list(value)
    if isinstance(value, dict) and shape.kind == "map" and shape.of is not None:
        return {key: _projected(each, shape.of) for key, each in value.items()}
    if isinstance(value, list) and shape.kind == "list" and shape.of is not None:
        return [_projected(each, shape.of) for each in value]
    return value


def refreshed(
    inputs: Properties, before: Mapping[str, Any], after: Mapping[str, Any], fields: Mapping[str, Field]
) -> Properties:
    """Return the inputs with the changes made in Azure since the outputs were recorded.

    A list whose items are also separate resources is compared only if the inputs have it.
    """
    unset = {name for name, field in fields.items() if field.standalone and name not in inputs}
    seen = {key: value for key, value in after.items() if key not in unset}
    return dict(_applied(inputs, projected(before, fields), projected(seen, fields)))


def _applied(base: Any, before: Any, after: Any) -> Any:
    if _equal(before, after):
        return base
    if isinstance(base, dict) and isinstance(before, dict) and isinstance(after, dict):
        result = {key: value for key, value in base.items() if key not in before or key in after}
        for key, value in after.items():
            if key not in before:
                result[key] = value
            elif not _equal(before[key], value, key):
                result[key] = _applied(base[key], before[key], value) if key in base else value
        return result
    if isinstance(base, list) and isinstance(before, list) and isinstance(after, list):
        return [
            _applied(base[index], before[index], value) if index < min(len(base), len(before)) else value
            for index, value in enumerate(after)
        ]
    return after


def _equal(one: Any, other: Any, key: str = "") -> bool:
    """Compare like Azure: the order of a list of strings and the spelling of a region do not matter."""
    if isinstance(one, list) and isinstance(other, list) and all(isinstance(each, str) for each in [*one, *other]):
        return sorted(one) == sorted(other)
    if key == "location" and isinstance(one, str) and isinstance(other, str):
        return one.replace(" ", "").lower() == other.replace(" ", "").lower()
    return bool(one == other)


def difference(
    kind: Kind, before: Mapping[str, Any], after: Mapping[str, Any], ignored: Sequence[str] = ()
) -> dict[str, Change]:
    """Return the inputs that differ, by path, and whether each replaces the resource."""
    forcing = {*kind.parameters, *kind.replaces}
    found = differences(before, after, lambda one, other, path: _equal(one, other, _key(path)))
    changes = {path: Change(what, replaces=_forces(path, forcing)) for path, what in found}
    return not_ignored(changes, ignored)


def _forces(path: Path, forcing: set[str]) -> bool:
    return any(_key(path[:length]) in forcing for length in range(1, len(path) + 1))


def _key(path: Path) -> str:
    """Return a path in the notation of a resource type: `a.b`, and `a[].b` for a property of items."""
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
