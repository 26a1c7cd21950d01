"""The shapes of resources and functions, read from the official SDK's own classes.

`pulumi_azure_native` is generated from Azure's API specifications: its argument classes say which properties there are,
which of them are required and of which type, its enums which values are allowed, its resource classes what is read
back. All of it is read at run time, one resource type at a time, so that no list here can be out of date.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import threading
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pulumi

_AZURE = re.compile(r"azure-native:([a-z0-9]+):(\w+)")
_RANDOM = re.compile(r"random:index/\w+:(\w+)")
_API_VERSION = re.compile(r"Uses Azure REST API version ([0-9][0-9a-z-]*)\.")
# The SDK's documentation of a property whose items are resources of their own: what is left out there is kept.
_STANDALONE = "also available as standalone resources"


# Names that stand unresolved inside the SDK's alias `Input`.
_PLUMBING = {"Output": pulumi.Output, "T": typing.Any}


class UnknownTokenError(LookupError):
    """The SDK has no such resource or function."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of one value.

    kind: string, integer, number, boolean, enum, object, list, map, union or any.
    of: the items of a list or a map. choices: the members of a union. values: what an enum allows.
    model: the SDK's class of an object; `fields` gives its properties.
    """

    kind: str
    of: Shape | None = None
    choices: tuple[Shape, ...] = ()
    values: tuple[str, ...] = ()
    model: type | None = None

    @property
    def fields(self) -> Mapping[str, Field]:
        """The properties of an object, by the name they have on the wire."""
        return fields_of(self.model) if self.model is not None else {}

    def __str__(self) -> str:
        if self.kind in ("list", "map"):
            return f"a {self.kind} of {self.of}"
        if self.kind == "union":
            return " or ".join(str(each) for each in self.choices)
        if self.kind == "object" and self.model is not None:
            return f"an object ({', '.join(self.fields)})"
        return {"any": "any value", "integer": "an integer", "enum": "a string", "object": "an object"}.get(
            self.kind, f"a {self.kind}"
        )


ANY = Shape("any")

_P = ParamSpec("_P")
_T = TypeVar("_T")
_LOADING = threading.RLock()


def _alone(read: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let one thread at a time look into the SDK: its modules load on first sight, and are half there meanwhile."""

    @functools.wraps(read)
    def locked(*arguments: _P.args, **options: _P.kwargs) -> _T:
        with _LOADING:
            return read(*arguments, **options)

    return locked


@dataclass(frozen=True, slots=True)
class Field:
    """One property of an object. standalone: its items are also resources of their own."""

    shape: Shape
    required: bool = False
    standalone: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type of the SDK. inputs, outputs: by the name on the wire."""

    token: str
    api_version: str
    inputs: Mapping[str, Field]
    outputs: Mapping[str, Field] = field(repr=False)


@_alone
@functools.cache
def resource(token: str) -> Resource:
    """Return the resource type of a token such as `azure-native:containerservice:AgentPool`.

    Raises UnknownTokenError when the SDK has no such resource.
    """
    module, name = _split(token)
    found: Any = getattr(module, name, None)
    arguments = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args", None)
    if not (inspect.isclass(found) and issubclass(found, pulumi.CustomResource)) or arguments is None:
        raise UnknownTokenError(token)
    version = _API_VERSION.search(Path(inspect.getfile(found)).read_text())
    model: Any = found
    return Resource(token, version[1] if version else "", fields_of(arguments), fields_of(model))


@_alone
@functools.cache
def function(token: str) -> Mapping[str, Field]:
    """Return the arguments of a function such as `azure-native:storage:listStorageAccountKeys`.

    The SDK marks none of them as required, whatever the API says. Raises UnknownTokenError when the SDK has no such
    function.
    """
    module, name = _split(token)
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", re.sub(r"SAS$", "Sas", name)).lower()
    found = getattr(module, snake, None)
    if not inspect.isfunction(found):
        raise UnknownTokenError(token)
    wire = dict(re.findall(r"__args__\['(\w+)'\] = (\w+)", inspect.getsource(found)))
    scope = vars(importlib.import_module(found.__module__))
    hints = typing.get_type_hints(found, globalns=scope, localns=_PLUMBING)
    return {key: Field(_shape(hints[name])) for key, name in wire.items()}


@_alone
@functools.cache
def fields_of(model: Any) -> Mapping[str, Field]:
    """Return the properties of one of the SDK's classes, by the name on the wire."""
    scope = vars(importlib.import_module(model.__module__))
    required = {
        name
        for name, parameter in inspect.signature(model.__init__).parameters.items()
        if parameter.default is inspect.Parameter.empty and parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    found: dict[str, Field] = {}
    for name, each in vars(model).items():
        getter = each.fget if isinstance(each, property) else None
        wire = getattr(getter, "_pulumi_name", None)
        if getter is None or wire is None:
            continue
        hint = typing.get_type_hints(getter, globalns=scope, localns=_PLUMBING).get("return", Any)
        found[wire] = Field(_shape(hint), name in required, _STANDALONE in (getter.__doc__ or ""))
    return types.MappingProxyType(found)


def _split(token: str) -> tuple[types.ModuleType, str]:
    found = _AZURE.fullmatch(token)
    module, name = (f"pulumi_azure_native.{found[1]}", found[2]) if found else ("pulumi_random", "")
    if not found:
        random = _RANDOM.fullmatch(token)
        if random is None:
            raise UnknownTokenError(token)
        name = random[1]
    try:
        return importlib.import_module(module), name
    except ModuleNotFoundError:
        raise UnknownTokenError(token) from None


def _shape(hint: Any) -> Shape:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        return _union([each for each in arguments if not _is_plumbing(each)])
    if origin is not None and issubclass(origin, pulumi.Output):
        return _shape(arguments[0])
    if origin is not None and issubclass(origin, Mapping):
        return Shape("map", of=_shape(arguments[1]))
    if origin is not None and issubclass(origin, typing.get_origin(typing.Sequence[Any]) or list):
        return Shape("list", of=_shape(arguments[0]))
    if not inspect.isclass(hint):
        return ANY
    if issubclass(hint, Enum):
        return Shape("enum", values=tuple(str(each.value) for each in hint))
    simple = {bool: "boolean", int: "integer", float: "number", str: "string"}.get(hint)
    if simple:
        return Shape(simple)
    if hasattr(hint, "_pulumi_input_type") or hasattr(hint, "_pulumi_output_type"):
        return Shape("object", model=hint)
    return ANY


def _union(members: list[Any]) -> Shape:
    shapes = [_shape(each) for each in members]
    enums = [each for each in shapes if each.kind == "enum"]
    if enums:
        # Union[str, Enum] is the SDK's way to let a newer value pass; the service takes what its enum has.
        return Shape("enum", values=tuple(dict.fromkeys(value for each in enums for value in each.values)))
    unique = list(dict.fromkeys(each for each in shapes if each.kind != "any"))
    if not unique:
        return ANY
    return unique[0] if len(unique) == 1 else Shape("union", choices=tuple(unique))


def _is_plumbing(member: Any) -> bool:
    """Tell whether a union's member only says that a value may be absent or come later."""
    origin = typing.get_origin(member) or member
    if origin is type(None):
        return True
    return inspect.isclass(origin) and (issubclass(origin, pulumi.Output) or origin.__name__ == "Awaitable")
