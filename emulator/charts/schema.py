"""Which values a chart knows, as a JSON schema. Helm takes any value and ignores what no template reads.

`python -m emulator.charts.schema CHART` prints the schema of upstream's chart, a folder or an archive.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from emulator.charts import archive
from emulator.charts.archive import Files

Schema = dict[str, Any]

KNOWN_VALUES = "known-values.schema.json"
"""File of a stub chart's archive. By a `values.schema.json` Helm would refuse what it ignores in upstream's chart."""

_REFERENCE = re.compile(rb"\.Values((?:\.[A-Za-z_]\w*)+)")
_MOST_SHOWN = 12
_SIMILAR, _ALIKE = 0.6, 0.8
"""How near a known key has to be to be named as the one that was meant (difflib)."""
_WORDS = {"object": "map", "array": "list"}
_WIDTH = 120


def of_chart(files: Files) -> Schema:
    """Return the schema of the values that a chart and its subcharts know.

    A stub brings it; other charts know what their values file mentions and what templates read by a full path.
    """
    if KNOWN_VALUES in files:
        found: Schema = json.loads(files[KNOWN_VALUES])
        return found
    found = _object({"global": {}, "tags": {"type": "object"}})
    defaults = yaml.load(files.get("values.yaml", b""), Loader=yaml.CSafeLoader) or {}
    found["properties"] |= {key: of_value(value) for key, value in defaults.items()}
    templates = [content for path, content in files.items() if path.startswith("templates/")]
    read = {tuple(name.decode()[1:].split(".")) for text in templates for name in _REFERENCE.findall(text)}
    for path in sorted(read):
        _add(found, path, {})
    _open(found, (), read - {path[:length] for path in read for length in range(1, len(path))}, False)
    for dependency in yaml.safe_load(files["Chart.yaml"]).get("dependencies") or []:
        name = dependency["name"]
        inner = {path.partition(f"charts/{name}/")[2]: content for path, content in files.items()}
        if "Chart.yaml" in inner:
            key = dependency.get("alias") or name
            found["properties"][key] = _merged(found["properties"].get(key, {}), of_chart(inner))
        for condition in filter(None, (dependency.get("condition") or "").split(",")):
            _add(found, tuple(condition.strip().split(".")), {"type": "boolean"})
    return found


def of_value(value: Any) -> Schema:
    """Return the schema that a default tells of; an empty map or a null may hold anything."""
    if isinstance(value, dict) and value:
        return _object({str(key): of_value(item) for key, item in value.items()})
    for kind, name in ((dict, "object"), (bool, "boolean"), (int | float, "number"), (list, "array"), (str, "string")):
        if isinstance(value, kind):
            return {"type": name}
    return {}


def defaults(schema: Schema) -> dict[str, Any]:
    """Return the values for which a schema has a default."""
    known = schema.get("properties", {}).items()
    found = {key: below.get("default", defaults(below)) for key, below in known}
    return {key: value for key, value in found.items() if value != {}}


def problems(given: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """Yield a sentence for each given value that the schema does not know, or knows to be of another type.

    Values that are not Python data (not known yet) are not judged.
    """
    for error in _VALIDATOR(schema).iter_errors(given):
        *parents, key = map(str, error.absolute_path)
        above = "".join(f"{parent}." for parent in parents)
        if error.validator == "type":
            yield f"{above}{key} is {error.message}"
            continue
        known = ", ".join(sorted(error.schema["properties"])[:_MOST_SHOWN]) or "none"
        hint = f"did you mean {above}{error.message}?" if error.message else f"known there: {known}"
        yield f"{above}{key} is no value of the chart, which ignores it; {hint}"


def _wrong_type(validator: Any, expected: str, value: Any, schema: Schema) -> Iterator[ValidationError]:
    """Text and numbers stand for each other in templates, and a null takes a default away."""
    found = of_value(value).get("type", expected)
    if found != expected and {found, expected} != {"string", "number"}:
        yield ValidationError(f"a {_WORDS.get(found, found)}; the chart has a {_WORDS.get(expected, expected)} there")


def _unknown_keys(validator: Any, others: bool, value: Any, schema: Schema) -> Iterator[ValidationError]:
    """Yield an error for each key that is not known, with the known key that was meant as its message.

    Where others are allowed too, only what is very near is meant so.
    """
    for key in value if isinstance(value, dict) else ():
        if key not in schema["properties"]:
            nearest = difflib.get_close_matches(key, schema["properties"], 1, _ALIKE if others else _SIMILAR)
            # What looks like a label is none of the words that an open object is likely to have meant.
            if not others or (nearest and key.isidentifier()):
                yield ValidationError("".join(nearest), path=[key])


_VALIDATOR = validators.extend(Draft202012Validator, {"type": _wrong_type, "additionalProperties": _unknown_keys})


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _add(schema: Schema, path: tuple[str, ...], last: Schema) -> None:
    """Let a schema know a path, unless something on the way is no object or may hold anything."""
    for key in path[:-1]:
        schema = schema["properties"].setdefault(key, _object({}))
        if "properties" not in schema:
            return
    schema["properties"].setdefault(path[-1], last)


def _open(schema: Schema, above: tuple[str, ...], whole: Set[tuple[str, ...]], inside: bool) -> None:
    """Let objects have other keys that templates read as a whole only, or whose keys no path can spell."""
    for key, below in schema["properties"].items():
        if "properties" in below:
            path = (*above, key)
            unspelt = "." in key or any("." in name for name in below["properties"])
            below["additionalProperties"] = inside or unspelt or path in whole
            _open(below, path, whole, below["additionalProperties"])


def _merged(one: Schema, other: Schema) -> Schema:
    """Return the schema that knows what either does."""
    if "properties" not in one or "properties" not in other:
        return one if "properties" in one else other
    both = {**one["properties"], **other["properties"]}
    for key in one["properties"].keys() & other["properties"].keys():
        both[key] = _merged(one["properties"][key], other["properties"][key])
    return {**_object(both), "additionalProperties": one["additionalProperties"] or other["additionalProperties"]}


def _written(schema: Schema, above: str = "") -> str:
    """Return a schema as JSON with a line for each property, or one for all where they fit.

    above: what the property's own line begins with.
    """
    line = json.dumps(schema)
    if len(above) + len(line) <= _WIDTH or "properties" not in schema:
        return line
    indent = " " * (len(above) - len(above.lstrip(" ")))
    head = json.dumps({key: item for key, item in schema.items() if key != "properties"})
    starts = {key: f"{indent} {json.dumps(key)}: " for key in schema["properties"]}
    items = ",\n".join(starts[key] + _written(item, starts[key]) for key, item in schema["properties"].items())
    return f'{head[:-1]}, "properties": {{\n{items}\n{indent}}}}}'


if __name__ == "__main__":
    chart = Path(sys.argv[1])
    content = archive.folder(chart) if chart.is_dir() else archive.unpack(chart)
    print(_written({"$schema": Draft202012Validator.META_SCHEMA["$id"], **of_chart(content)}))
