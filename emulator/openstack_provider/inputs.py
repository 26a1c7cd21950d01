"""Inputs: what the program left out and the provider fills in, and what is wrong with them."""

from __future__ import annotations

import difflib
import os
import random
import secrets
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from emulator.openstack_provider.schema import DEFAULTS, Property
from emulator.plugin.provider import DISABLE, Failure, Naming
from emulator.plugin.wire import UNKNOWN

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "map": dict,
    "list": list,
    "set": list,
}
_ARTICLES: Mapping[str, str] = {"integer": "an integer", "list": "a list", "set": "a list"}
_LONGEST_NAME = 255
_DIGITS = 7


def completed(
    given: Mapping[str, Any], before: Mapping[str, Any], properties: Mapping[str, Property], naming: Naming | None
) -> dict[str, Any]:
    """Return the inputs with defaults, and with a name where the program gives none (pulumi-terraform-bridge).

    before: the inputs of an existing resource, whose made-up name is kept. naming: None makes no name up.
    """
    found = {name: _filled(value, properties.get(name)) for name, value in given.items() if value is not None}
    added = []
    for name, each in properties.items():
        if name in found or not each.is_input:
            continue
        value = os.environ.get(each.variable) if each.variable else each.default
        if name == "name" and naming is not None:
            made_up = name in before.get(DEFAULTS, ())
            value = before.get(name) if made_up else _name(naming)
        if value is not None and not (set(each.not_with) & given.keys()):
            found[name] = value
            added.append(name)
    return {**found, DEFAULTS: sorted(added)}


def problems(inputs: Mapping[str, Any], properties: Mapping[str, Property]) -> list[Failure]:
    """Return what is wrong with completed inputs; values that are not known yet are not judged."""
    return list(_object({key: value for key, value in inputs.items() if key != DEFAULTS}, properties, ""))


def _filled(value: Any, of: Property | None) -> Any:
    """Return a value with the defaults of the objects in it."""
    if of is None or not of.of:
        return value
    if isinstance(value, list):
        return [_filled_object(each, of.of) for each in value]
    return _filled_object(value, of.of)


def _filled_object(value: Any, properties: Mapping[str, Property]) -> Any:
    if not isinstance(value, dict):
        return value
    given = {name: _filled(each, properties.get(name)) for name, each in value.items() if each is not None}
    defaults = {name: each.default for name, each in properties.items() if each.default is not None}
    return {**defaults, **given, DEFAULTS: sorted(defaults.keys() - given.keys())}


def _name(naming: Naming) -> str | None:
    if naming.proposed:
        return naming.proposed
    if naming.mode == DISABLE:
        return None
    digits = random.Random(naming.seed).randbytes(4).hex() if naming.seed else secrets.token_hex(4)  # noqa: S311
    return f"{naming.resource_name[: _LONGEST_NAME - _DIGITS - 1]}-{digits[:_DIGITS]}"


def _object(value: Mapping[str, Any], properties: Mapping[str, Property], path: str) -> Iterator[Failure]:
    inputs = {name: each for name, each in properties.items() if each.is_input}
    for name, each in inputs.items():
        where = f"{path}{name}"
        if each.required and value.get(name) is None:
            yield where, f"missing required property '{where}'"
        if value.get(name) is None:
            continue
        for other in each.not_with:
            if value.get(other) is not None and name < other:
                yield where, f"'{where}' and '{path}{other}' exclude each other"
        for other in each.only_with:
            if value.get(other) is None:
                yield where, f"'{where}' needs '{path}{other}'"
    for name, item in value.items():
        if name == DEFAULTS:
            continue
        if name not in inputs:
            yield f"{path}{name}", f"unknown property '{path}{name}'{_nearest(name, inputs)}"
        elif item is not None:
            yield from _value(item, inputs[name], f"{path}{name}")


def _value(value: Any, of: Property, path: str) -> Iterator[Failure]:
    if value is UNKNOWN:
        return
    if of.single:
        yield from _object(value, of.of, f"{path}.") if of.of else _typed(value, of.items or "string", path)
        return
    if any(_typed(value, of.kind, path)):
        yield from _typed(value, of.kind, path)
    elif of.kind == "map":
        for key, item in value.items():
            if not isinstance(item, str) and item is not UNKNOWN:
                yield f"{path}.{key}", f"'{path}.{key}' should be a string but is {_shown(item)}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            where = f"{path}[{index}]"
            if item is UNKNOWN:
                continue
            if of.of and isinstance(item, dict):
                yield from _object(item, of.of, f"{where}.")
            else:
                yield from _typed(item, "map" if of.of else of.items or "string", where)
    else:
        yield from _allowed(value, of, path)


def _typed(value: Any, kind: str, path: str) -> Iterator[Failure]:
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield path, f"'{path}' should be {_ARTICLES.get(kind, f'a {kind}')} but is {_shown(value)}"


def _allowed(value: Any, of: Property, path: str) -> Iterator[Failure]:
    found = value.lower() if "anyCase" in of.words and isinstance(value, str) else value
    if of.values and found not in of.values:
        allowed = ", ".join(map(str, of.values))
        yield path, f"'{path}' is {value!r}; allowed are {allowed}"
    if of.between and not of.between[0] <= value <= of.between[1]:
        yield path, f"'{path}' is {value}; allowed is {of.between[0]} to {of.between[1]}"


def _nearest(name: str, known: Collection[str]) -> str:
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def _shown(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
