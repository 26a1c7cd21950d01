"""Unusual settings: values generated from the models, and surprising values."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from hypothesis import strategies as st

from stacks.config.errors import Path
from stacks.targets.registry import TARGETS

Schema: TypeAlias = Mapping[str, Any]

NASTY: tuple[object, ...] = (
    # what YAML's readers make of words that somebody meant as a text
    None,
    True,
    False,
    "yes",
    "no",
    "null",
    "~",
    "2024-01-02T00:00:00Z",
    1.10,
    0o17,
    1e400,
    float("nan"),
    10**30,
    -1,
    0,
    # texts
    "",
    " ",
    "\n",
    "a\0b",
    "a b",
    "\u200b",
    "\u0663",
    "1\u0663",
    "x\u00b2",
    "\u00fc",
    "A_B",
    "-a",
    "a" * 64,
    "a" * 300,
    "1" * 5000,
    "1e99999999999",
    "1n",
    "1m",
    "5",
    "${HOME}",
    "~nobody/x",
    "../x",
    "https://[::1",
    "robot:hunter2-hunter2@registry.example.org/x:1",
    # names that something has
    "default",
    "kube-system",
    "monitoring",
    "slack",
    "workloads",
    "network-boundary",
    "grafana",
    "system:masters",
    "root",
    # networks
    "0.0.0.0/0",
    "0.0.0.0/1",
    "127.0.0.1/32",
    "::/0",
    "10.0.0.1/8",
    "10.0.0.0/255.0.0.0",
    # forms
    [],
    [None],
    [[]],
    ["a", "a"],
    {},
    {"": ""},
    {"password": "hunter2-hunter2"},
    [{"password": "hunter2-hunter2"}],
)
"""Surprising YAML, digits that are not numbers, blanks, too long names, and invalid forms."""


@cache
def schema_of(target: str) -> Schema:
    """Return the schema of a target's settings as their models say it, without the parts that it has no use for."""
    spec = TARGETS[target]
    schema = spec.settings.model_json_schema(by_alias=True)
    return {**schema, "properties": {name: schema["properties"][name] for name in ("target", *spec.sections)}}


def resolved(root: Schema, part: Schema) -> Schema:
    """Return a part of a schema without references, and of several forms that which is not null."""
    while True:
        if "$ref" in part:
            part = root["$defs"][part["$ref"].rpartition("/")[2]]
        elif "allOf" in part:
            part = part["allOf"][0]
        elif "anyOf" in part:
            part = next(form for form in part["anyOf"] if form.get("type") != "null")
        else:
            return part


def knows(target: str, path: Path) -> bool:
    """Return whether a path exists in a target's settings: each key is a key of the models."""
    root = schema_of(target)
    part = resolved(root, root)
    for step in path:
        if isinstance(step, int):
            part = resolved(root, part.get("items", {}))
        elif step in part.get("properties", {}):
            part = resolved(root, part["properties"][step])
        elif isinstance(part.get("additionalProperties"), Mapping):
            part = resolved(root, part["additionalProperties"])
        else:
            return False
    return True


def paths(target: str) -> list[Path]:
    """Return the paths of all keys, of lists the first item's."""
    root = schema_of(target)
    return [path for path in _paths(root, resolved(root, root), ()) if path and path != ("target",)]


def _paths(root: Schema, part: Schema, path: Path) -> Iterator[Path]:
    yield path
    for name, inner in part.get("properties", {}).items():
        yield from _paths(root, resolved(root, inner), (*path, name))
    if "items" in part:
        yield from _paths(root, resolved(root, part["items"]), (*path, 0))


def at(target: str, path: Path) -> Schema:
    """Return the schema of the value at a path."""
    root = schema_of(target)
    part = resolved(root, root)
    for step in path:
        part = resolved(root, part["items"] if isinstance(step, int) else part["properties"][step])
    return part


def values(target: str, part: Schema) -> st.SearchStrategy[Any]:
    """Return values that a model's types and bounds allow. Its checks may still reject them."""
    root = schema_of(target)
    kind = part.get("type")
    if "enum" in part or "const" in part:
        return st.sampled_from(part.get("enum") or [part["const"]])
    if kind == "boolean":
        return st.booleans()
    if kind in ("integer", "number"):
        low, high = part.get("minimum", 0), part.get("maximum", 10**6)
        edges = st.sampled_from([low, high])
        return edges | (st.integers(low, high) if kind == "integer" else st.floats(low, high, allow_subnormal=False))
    if kind == "array":
        items = values(target, resolved(root, part.get("items", {})))
        return st.lists(items, max_size=3)
    if kind == "object" and part.get("properties"):
        inner = {name: values(target, resolved(root, each)) for name, each in part["properties"].items()}
        required = {name: inner[name] for name in part.get("required", ())}
        return st.fixed_dictionaries(required, optional={k: v for k, v in inner.items() if k not in required})
    if kind == "object":
        return st.dictionaries(names(), names(), max_size=2)
    if kind == ["string", "number"]:
        return st.sampled_from([0, 1, 8, "500m", "64Gi", "1500Gi", "2T", 1.5])
    return names()


def names() -> st.SearchStrategy[str]:
    """Return names as people give them, few enough that two are often the same."""
    return st.sampled_from(["a", "a-b", "b", "blue", "red", "data", "x-service", "x", "jupyterlab-home", "alice", "1"])


@st.composite
def changes(draw: st.DrawFn, target: str, base: Mapping[str, Any], most: int = 4) -> dict[str, Any]:
    """Return a configuration with some of its values changed to allowed or surprising ones."""
    raw = deepcopy(dict(base))
    for path in draw(st.lists(st.sampled_from(paths(target)), min_size=1, max_size=most)):
        value = draw(values(target, at(target, path)) | st.sampled_from(NASTY))
        put(raw, path, deepcopy(value))
    return raw


def put(raw: dict[str, Any], path: Path, value: object) -> None:
    """Set a value if the values above it have the form for it."""
    place: Any = raw
    for step, following in pairwise(path):
        empty: object = [] if isinstance(following, int) else {}
        if isinstance(place, dict) and isinstance(step, str):
            place = place.setdefault(step, empty)
        elif isinstance(place, list) and isinstance(step, int):
            place.extend([empty] if len(place) <= step else [])
            place = place[step]
        else:
            return
    if isinstance(place, dict):
        place[path[-1]] = value
    elif isinstance(place, list):
        place[:1] = [value]
