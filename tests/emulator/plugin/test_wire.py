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


def test_assets_are_refused() -> None:
    asset = {wire.SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "x"}
    with pytest.raises(ProviderError, match="asset or archive cannot be part of a resource here"):
        wire.decode(wire.encode({"data": asset})).plain  # noqa: B018


def test_only_what_is_wanted_is_decoded() -> None:
    message = wire.encode({"a": Secret("s"), "b": {"c": 1}, "rest": UNKNOWN})
    assert wire.decode(message).only({"a", "b", "absent"}) == {"a": "s", "b": {"c": 1}}


def test_text_looks_through_secrets() -> None:
    message = wire.decode(wire.encode({"metadata": {"name": Secret("n")}, "outer": Secret({"inner": "i"})}))
    assert message.text("metadata", "name") == "n"
    assert message.text("outer", "inner") == "i"
    assert message.text("absent", "name") == ""
    assert wire.decode(Struct()).text("a") == ""
