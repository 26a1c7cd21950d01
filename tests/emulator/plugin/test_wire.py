"""Property values keep their value in the wire format."""

from typing import Any

import pytest

from emulator.plugin import wire
from emulator.plugin.errors import ProviderError
from emulator.plugin.wire import UNKNOWN


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": "text", "b": 1, "c": 1.5, "d": True, "e": False, "f": None},
        {"empty": {}, "none": [], "nested": {"list": [1, "two", {"three": [3]}, [4]]}},
        {"unknown": UNKNOWN, "list": [UNKNOWN]},
        {"large": 2**53, "negative": -1, "zero": 0},
    ],
)
def test_round_trip(value: dict[str, Any]) -> None:
    assert wire.decode(wire.encode(value)) == value


def test_whole_numbers_become_int_and_booleans_stay() -> None:
    plain = wire.decode(wire.encode({"n": 3.0, "b": True}))
    assert type(plain["n"]) is int
    assert plain["b"] is True


def test_a_secret_input_of_a_provider_is_its_value() -> None:
    secret = {wire.SIGNATURE: wire.SECRET, "value": {"deep": [1]}}
    assert wire.decode(wire.encode({"a": [secret]})) == {"a": [{"deep": [1]}]}


def test_assets_are_refused() -> None:
    message = wire.encode({"data": {wire.SIGNATURE: wire.ASSET, "text": "x"}})
    with pytest.raises(ProviderError, match="asset or archive cannot be part of a resource here"):
        wire.decode(message)
