"""Names, namespaces and identity of checked inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from emulator.plugin import wire
from emulator.plugin.errors import ProviderError
from emulator.plugin.provider import DISABLE, PROPOSE, Naming
from emulator.plugin.wire import UNKNOWN
from emulator.provider.check import checked, with_namespace
from emulator.provider.objects import Type

CONFIG_MAP = Type.of_token("kubernetes:core/v1:ConfigMap")
NEW = Naming("cm", seed=b"seed")


def check(
    inputs: dict[str, Any], kind: Type = CONFIG_MAP, naming: Naming = NEW, olds: dict[str, Any] | None = None
) -> dict[str, Any]:
    return checked(wire.decode(wire.encode(olds or {})), wire.decode(wire.encode(inputs)), kind, naming)


def test_complete_inputs_are_left_alone() -> None:
    decoded = wire.decode(wire.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}))
    assert checked(wire.decode(Struct()), decoded, CONFIG_MAP, NEW) is decoded.plain


def test_identity_is_filled_in_from_the_type() -> None:
    assert check({"metadata": {"name": "n"}}) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}


def test_another_kind_than_the_type_is_refused() -> None:
    with pytest.raises(ProviderError, match="kind is 'Secret', but the resource type kubernetes:core/v1:ConfigMap"):
        check({"kind": "Secret", "metadata": {"name": "n"}})


def test_a_missing_name_is_made_up_and_marked() -> None:
    metadata = check({})["metadata"]
    assert metadata["name"].startswith("cm-")
    assert len(metadata["name"]) == len("cm-") + 8
    assert metadata["annotations"] == {"pulumi.com/autonamed": "true"}
    assert check({})["metadata"]["name"] == metadata["name"], "the same seed has to give the same name"


def test_a_made_up_name_is_kept() -> None:
    olds = {"metadata": {"name": "cm-12345678", "annotations": {"pulumi.com/autonamed": "true"}}}
    assert check({}, olds=olds)["metadata"]["name"] == "cm-12345678"


def test_the_engines_naming_is_honoured() -> None:
    assert check({}, naming=replace(NEW, proposed="p", mode=PROPOSE))["metadata"]["name"] == "p"
    with pytest.raises(ProviderError, match="autonaming is disabled"):
        check({}, naming=replace(NEW, mode=DISABLE))


def test_an_unknown_name_is_a_name() -> None:
    assert check({"metadata": {"name": UNKNOWN}})["metadata"] == {"name": UNKNOWN}
    assert check({"metadata": UNKNOWN})["metadata"] is UNKNOWN


def test_generate_name_lists_and_nameless_patches_are_refused() -> None:
    with pytest.raises(ProviderError, match=r"metadata\.generateName does not go with server-side apply"):
        check({"metadata": {"generateName": "x-"}})
    with pytest.raises(ProviderError, match="declare its items one by one"):
        check({}, Type.of_token("kubernetes:core/v1:ConfigMapList"))
    with pytest.raises(ProviderError, match=r"needs metadata\.name"):
        check({}, Type.of_token("kubernetes:core/v1:NamespacePatch"))


def test_nulls_go() -> None:
    assert "data" not in check({"metadata": {"name": "n"}, "data": None})


def test_the_default_namespace_fills_a_gap_only() -> None:
    assert with_namespace({"metadata": {"name": "n"}}, "d")["metadata"] == {"name": "n", "namespace": "d"}
    given = {"metadata": {"name": "n", "namespace": "x"}}
    assert with_namespace(given, "d") is given
    unknown = {"metadata": UNKNOWN}
    assert with_namespace(unknown, "d") is unknown


def test_what_is_not_emulated_is_refused() -> None:
    annotations = {"pulumi.com/replaceUnready": "true"}
    with pytest.raises(ProviderError, match="replaceUnready is not supported by this emulated Kubernetes provider"):
        check({"metadata": {"name": "n", "annotations": annotations}})
