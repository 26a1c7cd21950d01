"""The values of a chart as a JSON schema. Helm accepts any value and ignores values that no template reads.

`python -m emulator.charts.schema CHART` prints the schema of upstream's chart, a folder or an archive.
"""

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
"""File in a stub chart's archive. With a `values.schema.json`, Helm would reject what it ignores in upstream's
chart.
"""

_REFERENCE = re.compile(rb"\.Values((?:\.[A-Za-z_]\w*)+)")
_MOST_SHOWN = 12
_SIMILAR, _ALIKE = 0.6, 0.8
"""Least similarity (difflib) of a known key that is suggested instead."""
_WORDS = {"object": "map", "array": "list"}
_WIDTH = 120


def of_chart(files: Files) -> Schema:
    """Return the schema of the values of a chart and its subcharts.

    A stub brings it. For other charts it has the keys of the values file, and the paths that templates read.
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
    """Return the schema that a default shows; an empty map or a null may have any value."""
    if isinstance(value, dict) and value:
        return _object({str(key): of_value(item) for key, item in value.items()})
    for kind, name in ((dict, "object"), (bool, "boolean"), (int | float, "number"), (list, "array"), (str, "string")):
        if isinstance(value, kind):
            return {"type": name}
    return {}


def defaults(schema: Schema) -> dict[str, Any]:
    """Return the defaults of a schema."""
    known = schema.get("properties", {}).items()
    found = {key: below.get("default", defaults(below)) for key, below in known}
    return {key: value for key, value in found.items() if value != {}}


def problems(given: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """Yield a sentence for each given value that the schema does not have, or has with another type.

    Values that are not Python data (still unknown) are not checked.
    """
    for error in _VALIDATOR(schema).iter_errors(given):
        *parents, key = map(str, error.absolute_path)
        above = "".join(f"{parent}." for parent in parents)
        if error.validator == "type":
            yield f"{above}{key} is {error.message}"
            continue
        known = ", ".join(sorted(error.schema["properties"])[:_MOST_SHOWN]) or "none"
        hint = f"did you mean {above}{error.message}?" if error.message else f"known there: {known}"
        yield f"{above}{key} is not a value of the chart, which ignores it; {hint}"


def _wrong_type(validator: Any, expected: str, value: Any, schema: Schema) -> Iterator[ValidationError]:
    """Yield an error for another type. Templates accept text for numbers and the reverse; a null removes a default."""
    found = of_value(value).get("type", expected)
    if found != expected and {found, expected} != {"string", "number"}:
        yield ValidationError(f"a {_WORDS.get(found, found)}; the chart has a {_WORDS.get(expected, expected)} there")


def _unknown_keys(validator: Any, others: bool, value: Any, schema: Schema) -> Iterator[ValidationError]:
    """Yield an error for each unknown key. Its message is the known key that was probably meant, or empty.

    If the object allows other keys, only very similar keys are errors.
    """
    for key in value if isinstance(value, dict) else ():
        if key not in schema["properties"]:
            nearest = difflib.get_close_matches(key, schema["properties"], 1, _ALIKE if others else _SIMILAR)
            # A key that looks like a label is not a misspelt key of an open object.
            if not others or (nearest and key.isidentifier()):
                yield ValidationError("".join(nearest), path=[key])


_VALIDATOR = validators.extend(Draft202012Validator, {"type": _wrong_type, "additionalProperties": _unknown_keys})


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _add(schema: Schema, path: tuple[str, ...], last: Schema) -> None:
    """Add a path to a schema, unless a parent is not an object or may have any value."""
    for key in path[:-1]:
        schema = schema["properties"].setdefault(key, _object({}))
        if "properties" not in schema:
            return
    schema["properties"].setdefault(path[-1], last)


def _open(schema: Schema, above: tuple[str, ...], whole: Set[tuple[str, ...]], inside: bool) -> None:
    """Allow other keys in objects that templates read only as a whole, or whose keys a path cannot express."""
    for key, below in schema["properties"].items():
        if "properties" in below:
            path = (*above, key)
            unspelt = "." in key or any("." in name for name in below["properties"])
            below["additionalProperties"] = inside or unspelt or path in whole
            _open(below, path, whole, below["additionalProperties"])


def _merged(one: Schema, other: Schema) -> Schema:
    """Return a schema with the keys of both."""
    if "properties" not in one or "properties" not in other:
        return one if "properties" in one else other
    both = {**one["properties"], **other["properties"]}
    for key in one["properties"].keys() & other["properties"].keys():
        both[key] = _merged(one["properties"][key], other["properties"][key])
    return {**_object(both), "additionalProperties": one["additionalProperties"] or other["additionalProperties"]}


def _written(schema: Schema, above: str = "") -> str:
    """Return a schema as JSON, with a line for each property, or one line if it fits.

    above: the text before the schema on its line.
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
