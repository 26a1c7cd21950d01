"""Which values a chart knows. Helm takes any value and ignores what no template reads; here that is said."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, cast

import yaml

from emulator.charts.archive import Files

Shape = str | dict[str, "Shape"]
"""A type (any, string, boolean, number, list, map) or the shapes of an object's keys.

The key `*` says that there may be others too: an object that templates pass on as a whole.
"""

OTHERS = "*"

RECORD = "recorded.json"
"""File of an archive made from a record; see `emulator.charts.record`."""

_REFERENCE = re.compile(rb"\.Values((?:\.[A-Za-z_]\w*)+)")
_MOST_SHOWN = 12
_SIMILAR, _ALIKE = 0.6, 0.8
"""How near a known key has to be to be named as the one that was meant (difflib)."""
_ALWAYS: dict[str, Shape] = {"global": "any", "tags": "map"}


def shape(files: Files) -> dict[str, Shape]:
    """Return the values that a chart and its subcharts know.

    A rendered chart knows what its values file mentions and what its templates read by a full path.
    """
    found = _own_shape(files)
    chart = yaml.safe_load(files["Chart.yaml"])
    for dependency in chart.get("dependencies") or []:
        name = dependency["name"]
        inner = _beneath(files, f"charts/{name}/")
        if inner:
            key = dependency.get("alias") or name
            found[key] = merged(found.get(key, {}), shape(inner))
        for condition in filter(None, (dependency.get("condition") or "").split(",")):
            _add(found, condition.strip().split("."), "boolean")
    return {**_ALWAYS, **found}


def _own_shape(files: Files) -> dict[str, Shape]:
    if RECORD in files:
        return cast(dict[str, Shape], json.loads(files[RECORD])["values"])
    defaults = yaml.load(files.get("values.yaml", b""), Loader=yaml.CSafeLoader) or {}
    return of_chart(defaults, [content for path, content in files.items() if path.startswith("templates/")])


def of_chart(defaults: Mapping[str, Any], templates: Iterable[bytes]) -> dict[str, Shape]:
    """Return the shape that a chart's own values file and templates tell of."""
    found = cast(dict[str, Shape], of_default(dict(defaults))) if defaults else {}
    read = {tuple(name.decode()[1:].split(".")) for text in templates for name in _REFERENCE.findall(text)}
    for path in sorted(read):
        _add(found, list(path), "any")
    above = {path[:length] for path in read for length in range(1, len(path))}
    _open(found, (), read - above)
    return found


def _open(found: dict[str, Shape], above: tuple[str, ...], whole: Set[tuple[str, ...]]) -> None:
    """Let objects have other keys that templates read as a whole only, or whose keys no path can spell."""
    for key, below in found.items():
        if isinstance(below, dict):
            path = (*above, key)
            _open(below, path, whole)
            if path in whole or "." in key or any("." in name for name in below):
                _open_all(below)


def _open_all(found: dict[str, Shape]) -> None:
    for below in found.values():
        if isinstance(below, dict):
            _open_all(below)
    found[OTHERS] = "any"


def _beneath(files: Files, prefix: str) -> dict[str, bytes]:
    return {path.removeprefix(prefix): content for path, content in files.items() if path.startswith(prefix)}


def of_default(value: Any) -> Shape:
    """Return the shape that a default value tells of; an empty map or a null may hold anything."""
    if isinstance(value, dict):
        return {str(key): of_default(item) for key, item in value.items()} if value else "map"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return "list"
    return "string" if isinstance(value, str) else "any"


def merged(one: Shape, other: Shape) -> Shape:
    """Return the shape that knows what either does."""
    if isinstance(one, dict) and isinstance(other, dict):
        both = dict(one)
        for key, item in other.items():
            both[key] = merged(both[key], item) if key in both else item
        return both
    return one if isinstance(one, dict) else other


def _add(found: dict[str, Shape], path: list[str], kind: str) -> None:
    for key in path[:-1]:
        below = found.setdefault(key, {})
        if not isinstance(below, dict):
            return
        found = below
    found.setdefault(path[-1], kind)


def problems(given: Mapping[str, Any], known: Mapping[str, Shape], above: str = "") -> Iterator[str]:
    """Yield a sentence for each given value that the chart does not know, or knows to be of another type.

    Values that are not Python data (not known yet) are not judged.
    """
    for key, value in given.items():
        path = f"{above}{key}"
        if key not in known:
            others = OTHERS in known
            # What looks like a label is none of the words that an open object is likely to have meant.
            nearest = difflib.get_close_matches(key, known, 1, _ALIKE if others else _SIMILAR)
            if others and not (nearest and key.isidentifier()):
                continue
            known_keys = ", ".join(sorted(known)[:_MOST_SHOWN]) or "none"
            hint = f"did you mean {above}{nearest[0]}?" if nearest else f"known there: {known_keys}"
            yield f"{path} is no value of the chart, which ignores it; {hint}"
            continue
        wanted = known[key]
        if isinstance(wanted, dict) and isinstance(value, dict):
            yield from problems(value, wanted, f"{path}.")
        elif wrong := _wrong_type(value, wanted):
            yield f"{path} is {wrong}"


def _wrong_type(value: Any, wanted: Shape) -> str:
    """Say what is wrong, or nothing. Text and numbers stand for each other in templates; other types do not."""
    found = of_default(value)
    found = "map" if isinstance(found, dict) else found
    expected = "map" if isinstance(wanted, dict) else wanted
    if "any" in (found, expected) or found == expected or {found, expected} == {"string", "number"}:
        return ""
    return f"a {found}; the chart has a {expected} there"
