"""Property values survive the way through the wire format."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from emulator.plugin import wire
from emulator.plugin.errors import ProviderError
from emulator.plugin.wire import UNKNOWN, Secret


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": "text", "b": 1, "c": 1.5, "d": True, "e": False, "f": None},
        {"empty": {}, "none": [], "nested": {"list": [1, "two", {"three": [3]}, [4]]}},
        {"unknown": UNKNOWN, "list": [UNKNOWN]},
        {"secret": Secret("s"), "deep": {"list": [Secret({"a": 1})]}},
        {"large": 2**53, "negative": -1, "zero": 0},
    ],
)
def test_round_trip(value: dict[str, Any]) -> None:
    decoded = wire.decode(wire.encode(value))
    assert decoded.marked == value


def test_whole_numbers_become_int_and_booleans_stay() -> None:
    plain = wire.decode(wire.encode({"n": 3.0, "b": True})).plain
    assert type(plain["n"]) is int
    assert plain["b"] is True


def test_flags_and_plain_values() -> None:
    decoded = wire.decode(wire.encode({"a": Secret({"b": "x"}), "u": UNKNOWN, "n": None}))
    assert (decoded.has_secrets, decoded.has_unknowns, decoded.has_nulls) == (True, True, True)
    assert decoded.plain == {"a": {"b": "x"}, "u": UNKNOWN, "n": None}
    simple = wire.decode(wire.encode({"a": "b"}))
    assert simple.plain is simple.marked


def test_an_output_value_is_its_value_or_unknown() -> None:
    output = {wire.SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    message = wire.encode({"known": {**output, "value": "v", "secret": True}, "unknown": output})
    decoded = wire.decode(message)
    assert decoded.plain == {"known": "v", "unknown": UNKNOWN}
    assert decoded.marked["known"] == Secret("v")


def test_a_resource_reference_is_its_id() -> None:
    reference = {wire.SIGNATURE: "5cf8f73096256a8f31e491e813e4eb8e", "urn": "urn:x", "id": "ns/name"}
    assert wire.decode(wire.encode({"r": reference})).plain == {"r": "ns/name"}


def test_assets_are_refused() -> None:
    asset = {wire.SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "x"}
    with pytest.raises(ProviderError, match="asset or archive cannot be part of a resource here"):
        wire.decode(wire.encode({"data": asset}))


def test_only_what_is_wanted_is_decoded() -> None:
    message = wire.encode({"a": Secret("s"), "b": {"c": 1}, "rest": UNKNOWN})
    decoded = wire.decode(message, only={"a", "b", "absent"})
    assert (decoded.plain, decoded.marked) == ({"a": "s", "b": {"c": 1}}, {"a": Secret("s"), "b": {"c": 1}})
    assert (decoded.has_secrets, decoded.has_unknowns) == (True, False)


def test_text_looks_through_secrets() -> None:
    message = wire.encode({"metadata": {"name": Secret("n")}, "outer": Secret({"inner": "i"})})
    assert wire.text(message, "metadata", "name") == "n"
    assert wire.text(message, "outer", "inner") == "i"
    assert wire.text(message, "absent", "name") == ""
    assert wire.text(Struct(), "a") == ""
