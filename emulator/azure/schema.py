"""The shapes of resources, read from the classes of the official SDK.

`pulumi_azure_native` is generated from Azure's API specifications. Its argument classes define properties, types and
which of them are required, its enums the allowed values, its resource classes the outputs. Each type is read at run
time, so there is no list here that could be out of date.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import threading
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pulumi
from pulumi import _types

_TOKEN = re.compile(r"(?:azure-native:([a-z0-9]+)|random:index/\w+):(\w+)")
_API_VERSION = re.compile(r"Uses Azure REST API version ([0-9][0-9a-z-]*)\.")
# The SDK's documentation of a property whose items are also resources; an update keeps items that it omits.
_STANDALONE = "also available as standalone resources"
_SIMPLE: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of one value.

    kind: string, integer, number, boolean, enum, object, list, map or any.
    of: the items of a list or a map.
    values: the values of an enum.
    model: the SDK's class of an object; `fields` has its properties.
    """

    kind: str
    of: Shape | None = None
    values: tuple[str, ...] = ()
    model: type | None = None

    @property
    def fields(self) -> Mapping[str, Field]:
        """The properties of an object, by their wire names."""
        return fields_of(self.model) if self.model is not None else {}

    def __str__(self) -> str:
        if self.kind in ("list", "map"):
            return f"a {self.kind} of {self.of}"
        return {"integer": "an integer", "enum": "a string", "object": "an object", "any": "any value"}.get(
            self.kind, f"a {self.kind}"
        )


@dataclass(frozen=True, slots=True)
class Field:
    """One property of an object. standalone: its items are also separate resources."""

    shape: Shape
    required: bool = False
    standalone: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type of the SDK. inputs, outputs: by wire name."""

    token: str
    api_version: str
    inputs: Mapping[str, Field]
    outputs: Mapping[str, Field] = field(repr=False)


# The SDK's modules load at first use and are incomplete until then.
_LOADING = threading.RLock()


@functools.cache
def resource(token: str) -> Resource:
    """Return the resource type of a token of the SDK, such as `azure-native:containerservice:AgentPool`.

    Raises KeyError for a token of another provider.
    """
    parts = _TOKEN.fullmatch(token)
    if parts is None:
        raise KeyError(token)
    with _LOADING:
        module = importlib.import_module(f"pulumi_azure_native.{parts[1]}" if parts[1] else "pulumi_random")
        found = getattr(module, parts[2])
        arguments = getattr(module, f"{parts[2]}InitArgs", None) or getattr(module, f"{parts[2]}Args")
        version = _API_VERSION.search(Path(inspect.getfile(found)).read_text())
        return Resource(token, version[1] if version else "", fields_of(arguments), fields_of(found))


@functools.cache
def fields_of(model: Any) -> Mapping[str, Field]:
    """Return the properties of one of the SDK's classes, by wire name."""
    with _LOADING:
        parameters = inspect.signature(model).parameters.values()
        required = {each.name for each in parameters if each.default is each.empty and each.kind is each.KEYWORD_ONLY}
        types = _types.resource_types(model)
        return {
            wire: Field(_shape(types[wire]), name in required, _STANDALONE in (getter.__doc__ or ""))
            for name, wire, getter in _types._py_properties(model)
        }


def _shape(hint: Any) -> Shape:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return _union([each for each in arguments if not _is_plumbing(each)])
    if inspect.isclass(origin) and issubclass(origin, pulumi.Output):
        return _shape(arguments[0])
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return Shape("map", of=_shape(arguments[1]))
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return Shape("list", of=_shape(arguments[0]))
    if hint in _SIMPLE:
        return Shape(_SIMPLE[hint])
    if inspect.isclass(hint) and issubclass(hint, Enum):
        return Shape("enum", values=tuple(str(each.value) for each in hint))
    if inspect.isclass(hint) and (_types.is_input_type(hint) or _types.is_output_type(hint)):
        return Shape("object", model=hint)
    return Shape("any")


def _union(members: list[Any]) -> Shape:
    shapes = [_shape(each) for each in members]
    enums = [each for each in shapes if each.kind == "enum"]
    if enums:
        # The SDK writes Union[str, Enum] to allow newer values; the service accepts only those of its enum.
        return enums[0]
    return shapes[0] if len(shapes) == 1 else Shape("any")


def _is_plumbing(member: Any) -> bool:
    """Tell whether a union's member only allows a value to be absent or unknown."""
    origin = typing.get_origin(member) or member
    return origin is type(None) or (inspect.isclass(origin) and origin.__name__ in ("Output", "Awaitable"))
