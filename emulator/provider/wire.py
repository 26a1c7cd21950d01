"""Property values on the wire: protobuf `Struct` messages to Python values and back.

The engine marks secrets, unknowns, assets and references by signatures inside ordinary structs (source: the Pulumi SDK,
`go/common/resource/plugin/rpc.go`, `go/common/resource/sig`). Most objects have none of them, so decoding yields
plain dicts and lists and only notes on the side whether a secret or an unknown occurred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from emulator.provider.errors import ProviderError
from emulator.provider.objects import prune

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

# The SDK's CustomResourceDefinition type spells these keys with underscores, Kubernetes with dashes.
_DASHED = {
    f"x_kubernetes_{name}": f"x-kubernetes-{name.replace('_', '-')}"
    for name in (
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "preserve_unknown_fields",
        "validations",
    )
}
_UNDERSCORED = {dashed: underscored for underscored, dashed in _DASHED.items()}


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


class Secret:
    """A value that the engine has to encrypt in the state and to hide on the screen."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(slots=True)
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
        result: dict[str, Any] = {}
        value = self.value
        for name, item in fields.items():
            key = _DASHED.get(name, name) if name[:2] == "x_" else name
            kind = item.WhichOneof("kind")
            if kind == "string_value":
                text = item.string_value
                if len(text) == 36 and text in _UNKNOWNS:
                    self.unknowns = True
                    result[key] = UNKNOWN
                else:
                    result[key] = text
            elif kind == "struct_value":
                result[key] = self.struct(item.struct_value)
            else:
                result[key] = value(item, kind)
        return result

    def value(self, item: Value, kind: str | None) -> Any:
        if kind == "string_value":
            text = item.string_value
            if len(text) == 36 and text in _UNKNOWNS:
                self.unknowns = True
                return UNKNOWN
            return text
        if kind == "struct_value":
            return self.struct(item.struct_value)
        if kind == "list_value":
            return [self.value(each, each.WhichOneof("kind")) for each in item.list_value.values]
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
            inner = message.fields["value"]
            self.secrets = True
            return Secret(self.value(inner, inner.WhichOneof("kind")))
        if signature == _OUTPUT:
            inner = message.fields["value"]
            kind = inner.WhichOneof("kind")
            if kind is None:
                self.unknowns = True
                return UNKNOWN
            decoded = self.value(inner, kind)
            if message.fields["secret"].bool_value:
                self.secrets = True
                return Secret(decoded)
            return decoded
        if signature == _RESOURCE:
            return message.fields["id"].string_value
        what = "an asset or archive" if signature in _ASSETS else f"a value with the signature {signature}"
        raise ProviderError(f"{what} cannot be part of a Kubernetes object: give its content as a string instead")


def decode(message: Struct) -> Decoded:
    """Decode a property map; whole numbers become int, keys `x_kubernetes_*` get their dashes.

    Raises ProviderError for assets and archives, which no Kubernetes object can hold.
    """
    decoder = _Decoder()
    marked = decoder.struct(message)
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


def decode_shape(message: Struct, shape: dict[str, Any]) -> dict[str, Any]:
    """Decode no more of a live object than `objects.prune(object, shape)` would keep.

    `shape` is a plain dict. Managed fields and status are most of a live object; not to build Python values from
    them is what makes an unchanged resource cheap. Secrets are stripped, unknowns are `UNKNOWN`.
    """
    decoder = _Decoder()
    pruned = _shaped_struct(decoder, message, shape)
    return prune(strip_secrets(pruned), shape) if decoder.secrets else pruned


def _shaped_struct(decoder: _Decoder, message: Struct, shape: dict[str, Any]) -> Any:
    fields = message.fields
    if SIGNATURE in fields:
        return decoder.special(message)
    result = {}
    for key, wanted in shape.items():
        if key not in fields:
            key_on_wire = _UNDERSCORED.get(key)
            if key_on_wire is None or key_on_wire not in fields:
                continue
            item = fields[key_on_wire]
        else:
            item = fields[key]
        result[key] = _shaped_value(decoder, item, wanted)
    return result


def _shaped_value(decoder: _Decoder, item: Value, wanted: Any) -> Any:
    kind = item.WhichOneof("kind")
    if kind == "struct_value" and isinstance(wanted, dict):
        return _shaped_struct(decoder, item.struct_value, wanted)
    if kind == "list_value" and isinstance(wanted, list):
        values = item.list_value.values
        if not values or not wanted:
            return []
        first = values[0].WhichOneof("kind")
        if (first == "struct_value") == isinstance(wanted[0], dict) and (first == "list_value") == isinstance(
            wanted[0], list
        ):
            return [_shaped_value(decoder, each, shape) for each, shape in zip(values, wanted, strict=False)]
    return decoder.value(item, kind)


def text(message: Struct, *path: str) -> str:
    """Return the string at the path of keys, looking through secrets, or an empty string."""
    for key in path[:-1]:
        if key not in message.fields:
            return ""
        message = message.fields[key].struct_value
        if SIGNATURE in message.fields:
            message = message.fields["value"].struct_value
    if path[-1] not in message.fields:
        return ""
    value = message.fields[path[-1]]
    if value.WhichOneof("kind") == "struct_value" and text(value.struct_value, SIGNATURE) == _SECRET:
        value = value.struct_value.fields["value"]
    return str(value.string_value)


def encode(values: dict[str, Any], underscores: bool = False) -> Struct:
    """Encode a property map; `Secret` and `UNKNOWN` become their signatures.

    underscores: spell keys `x-kubernetes-*` with underscores, as the state does.
    """
    message = Struct()
    _fill(message, values, underscores)
    return message


def _fill(message: Struct, values: dict[str, Any], underscores: bool) -> None:
    fields = message.fields
    for name, item in values.items():
        key = _UNDERSCORED.get(name, name) if underscores and name[:2] == "x-" else name
        if type(item) is str:
            fields[key].string_value = item
        else:
            _set(fields[key], item, underscores)


def _set(target: Value, item: Any, underscores: bool) -> None:
    kind = type(item)
    if kind is str:
        target.string_value = item
    elif kind is dict:
        inner = target.struct_value
        inner.SetInParent()
        _fill(inner, item, underscores)
    elif kind is list:
        values = target.list_value
        values.SetInParent()
        add = values.values.add
        for each in item:
            _set(add(), each, underscores)
    elif kind is bool:
        target.bool_value = item
    elif kind is int or kind is float:
        target.number_value = item
    elif item is None:
        target.null_value = NULL_VALUE
    elif item is UNKNOWN:
        target.string_value = UNKNOWN_STRING
    elif kind is Secret:
        fields = target.struct_value.fields
        fields[SIGNATURE].string_value = _SECRET
        _set(fields["value"], item.value, underscores)
    else:
        raise TypeError(f"a {kind.__name__} is no property value")
