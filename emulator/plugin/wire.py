"""Property values on the wire: protobuf `Struct` messages to Python values and back.

The engine marks secrets, unknowns, assets and references by signatures inside ordinary structs (source: the Pulumi SDK,
`go/common/resource/plugin/rpc.go`, `go/common/resource/sig`). Most maps have none of them, so decoding yields plain
dicts and lists and only notes on the side whether a secret or an unknown occurred.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from emulator.plugin.errors import ProviderError

SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_ASSETS = frozenset({"c44067f5952c0a294b673a41bacd8c17", "0def7320c3a5731c473e5ecbe6d01bc7"})
UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS = frozenset(
    {
        UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


class _Unknown(Enum):
    VALUE = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown.VALUE
"""The one value that is not known until an update has run."""


@dataclass(slots=True, repr=False)
class Secret:
    """A value that the engine has to encrypt in the state and to hide on the screen."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(...)"


class _Decoder:
    __slots__ = ("nulls", "secrets", "unknowns")

    def __init__(self) -> None:
        self.secrets = False
        self.unknowns = False
        self.nulls = False

    def struct(self, message: Struct) -> Any:
        fields = message.fields
        if SIGNATURE in fields:
            return self.special(message)
        value = self.value
        return {name: value(item) for name, item in fields.items()}

    def value(self, item: Value) -> Any:
        kind = item.WhichOneof("kind")
        if kind == "string_value":
            text = item.string_value
            if len(text) == 36 and text in _UNKNOWNS:
                self.unknowns = True
                return UNKNOWN
            return text
        if kind == "struct_value":
            return self.struct(item.struct_value)
        if kind == "list_value":
            return [self.value(each) for each in item.list_value.values]
        if kind == "number_value":
            number = item.number_value
            return int(number) if number.is_integer() else number
        if kind == "bool_value":
            return item.bool_value
        self.nulls = True
        return None

    def special(self, message: Struct) -> Any:
        # The engine sends no others than these: the handshake accepts neither resource references nor outputs.
        signature = message.fields[SIGNATURE].string_value
        if signature == _SECRET:
            self.secrets = True
            return Secret(self.value(message.fields["value"]))
        what = "an asset or archive" if signature in _ASSETS else f"a value with the signature {signature}"
        raise ProviderError(f"{what} cannot be part of a resource here: give its content as a string instead")


class Properties:
    """A property map of a message, decoded when it is first looked at: most calls find that nothing has changed.

    Whole numbers become int. Looking at one raises ProviderError for assets and archives, which no resource of ours
    can hold.
    """

    def __init__(self, message: Struct) -> None:
        self.message = message

    @classmethod
    def of(cls, values: dict[str, Any]) -> Properties:
        """Return a property map with these values."""
        return cls(encode(values))

    def __bool__(self) -> bool:
        return bool(self.message.fields)

    @functools.cached_property
    def _decoded(self) -> tuple[dict[str, Any], _Decoder]:
        decoder = _Decoder()
        return decoder.struct(self.message), decoder

    @property
    def marked(self) -> dict[str, Any]:
        """The values, with `Secret` wrappers; the very same object as `plain` when there is no secret."""
        return self._decoded[0]

    @functools.cached_property
    def plain(self) -> dict[str, Any]:
        """The values, without secret wrappers; those that are not known yet are `UNKNOWN`."""
        plain: dict[str, Any] = strip_secrets(self.marked) if self.has_secrets else self.marked
        return plain

    @property
    def has_secrets(self) -> bool:
        """Whether there is a secret at any depth."""
        return self._decoded[1].secrets

    @property
    def has_unknowns(self) -> bool:
        """Whether there is an unknown value at any depth."""
        return self._decoded[1].unknowns

    @property
    def has_nulls(self) -> bool:
        """Whether there is a null at any depth."""
        return self._decoded[1].nulls

    def only(self, names: Collection[str]) -> dict[str, Any]:
        """Return the wanted ones of the values, plain; the others are not decoded."""
        decoder, fields = _Decoder(), self.message.fields
        found = {name: decoder.value(fields[name]) for name in names if name in fields}
        return strip_secrets(found) if decoder.secrets else found

    def part(self, name: str) -> Properties:
        """Return a map inside of this one; an empty one where there is none."""
        found = self.message.fields.get(name)
        return Properties(found.struct_value if found is not None else Struct())

    def text(self, *path: str) -> str:
        """Return the string at the path of keys, looking through secrets, or an empty string."""
        message, value = self.message, Value()
        for key in path:
            if key not in message.fields:
                return ""
            value = message.fields[key]
            message = value.struct_value
            if SIGNATURE in message.fields:
                value = message.fields.get("value") or Value()
                message = value.struct_value
        return value.string_value


Values = Properties | dict[str, Any]
"""A property map that is answered: one that came in, or a new one with `Secret` and `UNKNOWN` in it."""


def decode(message: Struct) -> Properties:
    """Return the property map of a message."""
    return Properties(message)


def strip_secrets(value: Any) -> Any:
    """Return the value without `Secret` wrappers; containers are new, leaves are shared."""
    if isinstance(value, dict):
        return {key: strip_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strip_secrets(item) for item in value]
    if isinstance(value, Secret):
        return strip_secrets(value.value)
    return value


def contains_secret(value: Any) -> bool:
    """Tell whether a `Secret` occurs anywhere in the value."""
    if isinstance(value, dict):
        return any(map(contains_secret, value.values()))
    if isinstance(value, list):
        return any(map(contains_secret, value))
    return isinstance(value, Secret)


def message_of(values: Values | None) -> Struct | None:
    """Return the message of a property map; one that came in as it came."""
    if values is None:
        return None
    return values.message if isinstance(values, Properties) else encode(values)


def encode(values: dict[str, Any]) -> Struct:
    """Encode a property map; `Secret` and `UNKNOWN` become their signatures, `Properties` are copied."""
    message = Struct()
    _fill(message, values)
    return message


def _fill(message: Struct, values: dict[str, Any]) -> None:
    fields = message.fields
    for name, item in values.items():
        _set(fields[name], item)


def _set(target: Value, item: Any) -> None:
    kind = type(item)
    if kind is str:
        target.string_value = item
    elif kind is dict:
        inner = target.struct_value
        inner.SetInParent()
        _fill(inner, item)
    elif kind is list:
        values = target.list_value
        values.SetInParent()
        add = values.values.add
        for each in item:
            _set(add(), each)
    elif kind is bool:
        target.bool_value = item
    elif kind is int or kind is float:
        target.number_value = item
    elif item is None:
        target.null_value = NULL_VALUE
    elif item is UNKNOWN:
        target.string_value = UNKNOWN_STRING
    elif kind is Properties:
        target.struct_value.CopyFrom(item.message)
    elif kind is Secret:
        _fill(target.struct_value, {SIGNATURE: _SECRET, "value": item.value})
    else:
        raise TypeError(f"a {kind.__name__} is no property value")
