"""What the state keeps of an object, and what of it is secret."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.plugin import wire
from emulator.plugin.wire import Secret
from emulator.provider.definitions import dashed, underscored
from emulator.provider.objects import prune
from emulator.provider.secrecy import annotate


def test_schema_extensions_have_dashes_here_and_underscores_in_the_state() -> None:
    message = wire.encode(underscored({"x-kubernetes-list-type": "atomic", "x-other": 1}))
    assert sorted(message.fields) == ["x-other", "x_kubernetes_list_type"]
    assert dashed(wire.decode(message).plain) == {"x-kubernetes-list-type": "atomic", "x-other": 1}


@pytest.mark.parametrize(
    ("live", "shape"),
    [
        ({"a": 1, "b": 2}, {"a": 0}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 0}}),
        ({"a": [{"n": 1, "x": 1}, {"n": 2}, {"n": 3}]}, {"a": [{"n": 0}, {"n": 0}]}),
        ({"a": [1, 2, 3]}, {"a": [1]}),
        ({"a": [1, 2]}, {"a": []}),
        ({"a": []}, {"a": [1]}),
        ({"a": [{"x": 1}]}, {"a": ["text"]}),
        ({"a": "text"}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": "text"}),
        ({"data": Secret({"k": "v", "other": "w"})}, {"data": {"k": ""}}),
        ({"x-kubernetes-list-type": "set", "y": 1}, {"x-kubernetes-list-type": "atomic"}),
    ],
)
def test_decoding_by_shape_equals_decoding_and_pruning(live: dict[str, Any], shape: dict[str, Any]) -> None:
    message = wire.encode(live)
    assert prune(wire.decode(message).only(shape), shape) == prune(wire.decode(message).plain, shape)


def test_secrets_are_copied_to_the_same_paths() -> None:
    inputs = {"data": {"a": Secret("x"), "b": "y"}, "list": ["p", Secret("q")], "only": Secret("input")}
    outputs = {"data": {"a": "x", "b": "y", "c": "z"}, "list": ["p", "q"], "status": {}}
    assert annotate(outputs, inputs) == {
        "data": {"a": Secret("x"), "b": "y", "c": "z"},
        "list": Secret(["p", "q"]),
        "status": {},
    }


def test_the_content_of_a_secret_object_is_always_secret() -> None:
    outputs = {"kind": "Secret", "data": {"a": "eA=="}, "metadata": {"name": "n"}}
    assert annotate(outputs, {}) == {"kind": "Secret", "data": Secret({"a": "eA=="}), "metadata": {"name": "n"}}
