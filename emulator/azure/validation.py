"""Validates inputs against the SDK's shapes: missing, unknown, wrong type, not in an enum."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from emulator.azure.schema import Field, Shape
from emulator.plugin.wire import UNKNOWN

Problem = tuple[str, str]
"""Path of a property, and the problem with it."""

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "enum": str,
    "list": list,
    "map": dict,
    "object": dict,
}


def problems(inputs: Mapping[str, Any], fields: Mapping[str, Field]) -> list[Problem]:
    """Return the problems of the inputs. Unknown values are not checked."""
    return list(_object(inputs, fields, ""))


def _object(value: Mapping[str, Any], fields: Mapping[str, Field], path: str) -> Iterator[Problem]:
    for name, field in fields.items():
        if field.required and value.get(name) is None:
            yield _join(path, name), f"missing required property '{_join(path, name)}'"
    for name, item in value.items():
        where = _join(path, name)
        if name not in fields:
            yield where, f"unknown property '{where}'{_nearest(name, fields)}"
        elif item is not None:
            yield from _value(item, fields[name].shape, where)


def _value(value: Any, shape: Shape, path: str) -> Iterator[Problem]:
    if value is UNKNOWN or shape.kind == "any":
        return
    if not isinstance(value, _TYPES[shape.kind]) or (isinstance(value, bool) and shape.kind != "boolean"):
        yield path, f"'{path}' should be {shape} but is {_shown(value)}"
    elif shape.kind == "enum" and value.lower() not in (each.lower() for each in shape.values):
        allowed = ", ".join(shape.values)
        yield path, f"'{path}' is '{value}'; allowed are {allowed}{_nearest(value, shape.values)}"
    elif shape.kind == "object":
        yield from _object(value, shape.fields, path)
    elif shape.of is not None and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _value(item, shape.of, f"{path}[{index}]")
    elif shape.of is not None:
        for key, item in value.items():
            yield from _value(item, shape.of, _join(path, key))


def _nearest(name: str, known: Any) -> str:
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{found[0]}'?" if found and found[0] != name else ""


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", str: "a string", int: "a number", float: "a number"}
    kind = names.get(type(value), type(value).__name__)
    return kind if isinstance(value, dict | list | str) else f"{kind} ({value})"
