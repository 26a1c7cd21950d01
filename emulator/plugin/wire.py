"""Property values on the wire: conversion of protobuf `Struct` messages to Python values and back.

The engine marks unknowns, secrets, assets and references in ordinary structs (source: the Pulumi SDK,
`go/common/resource/plugin/rpc.go`, `go/common/resource/sig`). The handshake does not accept secrets. So the engine
sends their plain values, and marks values in the responses again if they were secret in the inputs. Only Configure
receives marked secrets.
"""

from enum import Enum
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from emulator.plugin.errors import ProviderError
from runner import properties
from runner.properties import SECRET, SIGNATURE

ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"


class _Unknown(Enum):
    VALUE = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown.VALUE
"""The value that is unknown until an update has run."""


def decode(message: Struct) -> dict[str, Any]:
    """Return the property map of a message; whole numbers become int.

    Raises ProviderError for assets and archives, which the emulated resources do not support.
    """
    return {name: _value(item) for name, item in message.fields.items()}


def _value(item: Value) -> Any:
    kind = item.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if item.string_value in properties.UNKNOWNS else item.string_value
    if kind == "struct_value":
        inner = item.struct_value
        return _marked(inner) if SIGNATURE in inner.fields else decode(inner)
    if kind == "list_value":
        return [_value(each) for each in item.list_value.values]
    if kind == "number_value":
        number = item.number_value
        return int(number) if number.is_integer() else number
    return item.bool_value if kind == "bool_value" else None


def _marked(message: Struct) -> Any:
    signature = message.fields[SIGNATURE].string_value
    if signature == SECRET:
        return _value(message.fields["value"])
    what = "an asset or archive" if signature in (ASSET, ARCHIVE) else f"a value with the signature {signature}"
    raise ProviderError(f"{what} cannot be part of a resource here. Give its content as a string instead")


def encode(values: dict[str, Any]) -> Struct:
    """Return the message of a property map. Raises TypeError for a value that is not a property value."""
    message = Struct()
    _fill(message, values)
    return message


def _fill(message: Struct, values: dict[str, Any]) -> None:
    for name, item in values.items():
        _set(message.fields[name], item)


def _set(target: Value, item: Any) -> None:
    kind = type(item)
    if kind is str:
        target.string_value = item
    elif kind is dict:
        target.struct_value.SetInParent()
        _fill(target.struct_value, item)
    elif kind is list:
        target.list_value.SetInParent()
        for each in item:
            _set(target.list_value.values.add(), each)
    elif kind is bool:
        target.bool_value = item
    elif kind is int or kind is float:
        target.number_value = item
    elif item is None:
        target.null_value = NULL_VALUE
    elif item is UNKNOWN:
        target.string_value = properties.UNKNOWN
    else:
        raise TypeError(f"a {kind.__name__} is not a property value")
