"""Property values on the wire: protobuf `Struct` messages to Python values and back.

The engine marks secrets, unknowns, assets and references by signatures inside ordinary structs (source: the Pulumi SDK,
`go/common/resource/plugin/rpc.go`, `go/common/resource/sig`). Most maps have none of them, so decoding yields plain
dicts and lists and only notes on the side whether a secret or an unknown occurred.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from emulator.plugin.errors import ProviderError

SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
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


class _Unknown:
    """The one value that is not known until an update has run."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __deepcopy__(self, memo: dict[int, Any]) -> _Unknown:
        return self

    def __copy__(self) -> _Unknown:
        return self


UNKNOWN = _Unknown()


@dataclass(slots=True, repr=False)
class Secret:
    """A value that the engine has to encrypt in the state and to hide on the screen."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded property map.

    plain: the values, without secret wrappers; unknown values are `UNKNOWN`.
    marked: the same values with `Secret` wrappers; the very same object as `plain` when there is no secret.
    has_secrets, has_unknowns, has_nulls: whether there is any, at any depth.
    """

    plain: dict[str, Any]
    marked: dict[str, Any]
    has_secrets: bool
    has_unknowns: bool
    has_nulls: bool


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
        signature = message.fields[SIGNATURE].string_value
        if signature == _SECRET:
            self.secrets = True
            return Secret(self.value(message.fields["value"]))
        if signature == _OUTPUT:
            inner = message.fields["value"]
            if inner.WhichOneof("kind") is None:
                self.unknowns = True
                return UNKNOWN
            decoded = self.value(inner)
            if message.fields["secret"].bool_value:
                self.secrets = True
                return Secret(decoded)
            return decoded
        if signature == _RESOURCE:
            return message.fields["id"].string_value
        what = "an asset or archive" if signature in _ASSETS else f"a value with the signature {signature}"
        raise ProviderError(f"{what} cannot be part of a resource here: give its content as a string instead")


def decode(message: Struct, only: Collection[str] | None = None) -> Decoded:
    """Decode a property map; whole numbers become int.

    only: the properties that are wanted, None for all of them. Raises ProviderError for assets and archives, which no
    resource of ours can hold.
    """
    decoder = _Decoder()
    if only is None:
        marked = decoder.struct(message)
    else:
        marked = {name: decoder.value(message.fields[name]) for name in only if name in message.fields}
    plain = strip_secrets(marked) if decoder.secrets else marked
    return Decoded(plain, marked, decoder.secrets, decoder.unknowns, decoder.nulls)


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


def text(message: Struct, *path: str) -> str:
    """Return the string at the path of keys, looking through secrets, or an empty string."""
    value = Value()
    for key in path:
        if key not in message.fields:
            return ""
        value = message.fields[key]
        message = value.struct_value
        if SIGNATURE in message.fields:
            value = message.fields.get("value") or Value()
            message = value.struct_value
    return value.string_value


def encode(values: dict[str, Any]) -> Struct:
    """Encode a property map; `Secret` and `UNKNOWN` become their signatures."""
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
    elif kind is Secret:
        _fill(target.struct_value, {SIGNATURE: _SECRET, "value": item.value})
    else:
        raise TypeError(f"a {kind.__name__} is no property value")
