"""Bringing objects to the form in which the API server returns them."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.plugin.errors import ProviderError
from emulator.provider.normal import canonical_quantity, normalized
from emulator.provider.objects import Type, parse_id, without_nulls


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        (8, "8"),
        ("8", "8"),
        ("8000m", "8"),
        (0.5, "500m"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("128Gi", "128Gi"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("0Gi", "0"),
        ("-5", "-5"),
        ("2000G", "2T"),
        ("nonsense", "nonsense"),
        (True, True),
    ],
)
def test_quantities(given: Any, canonical: Any) -> None:
    assert canonical_quantity(given) == canonical


def test_quantities_of_built_in_kinds_are_made_canonical() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}]},
    }
    assert normalized(pod)["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": 10}}}
    assert normalized(quota)["spec"]["hard"] == {"pods": "10"}


def test_what_needs_no_change_stays_the_same_object() -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": {"limits": {"cpu": 1}}}
    assert normalized(queue) is queue
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}}
    assert normalized(pod) is pod


def test_a_config_map_keeps_strings_that_look_like_quantities() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"limits": "1000m"}}
    assert normalized(config_map) is config_map


def test_read_only_metadata_goes() -> None:
    manifest = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "n", "uid": "u", "creationTimestamp": None}}
    assert normalized(manifest)["metadata"] == {"name": "n"}


def test_secrets_have_data_only() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "x"}, "data": {"a": "b2xk", "b": "eQ=="}}
    assert normalized(secret) == {"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}}
    wrapped = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "eHh4\neHh4"}}
    assert normalized(wrapped)["data"] == {"a": "eHh4eHh4"}


def test_definitions_lose_what_the_server_drops() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"preserveUnknownFields": False, "group": "g"},
        "status": {"conditions": []},
    }
    assert normalized(definition) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": "g"},
    }


def test_nulls_in_maps_go_and_items_of_lists_stay() -> None:
    assert without_nulls({"a": None, "b": {"c": None, "d": [None, {"e": None}]}}) == {"b": {"d": [None, {}]}}
    kept = {"a": [1], "b": {"c": 0}}
    assert without_nulls(kept) is kept


@pytest.mark.parametrize(
    ("token", "api_version", "kind", "patch"),
    [
        ("kubernetes:core/v1:ConfigMap", "v1", "ConfigMap", False),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment", False),
        ("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "kueue.x-k8s.io/v1beta2", "ClusterQueue", False),
        ("kubernetes:core/v1:NamespacePatch", "v1", "Namespace", True),
        ("kubernetes:example.com/v1:HotPatch", "example.com/v1", "HotPatch", False),
    ],
)
def test_types(token: str, api_version: str, kind: str, patch: bool) -> None:
    parsed = Type.of_token(token)
    assert (parsed.api_version, parsed.kind, parsed.patch) == (api_version, kind, patch)


@pytest.mark.parametrize(
    "token",
    [
        "kubernetes:helm.sh/v4:Chart",
        "kubernetes:yaml/v2:ConfigFile",
        "kubernetes:kustomize/v2:Directory",
    ],
)
def test_what_only_the_official_plugin_can_do_is_named(token: str) -> None:
    with pytest.raises(ProviderError, match="is not supported by this emulated Kubernetes provider") as raised:
        Type.of_token(token)
    assert token in str(raised.value)


def test_malformed_tokens_and_ids() -> None:
    with pytest.raises(ProviderError, match="kubernetes:<group>/<version>:<Kind>"):
        Type.of_token("kubernetes:v1:ConfigMap")
    assert parse_id("ns/name") == ("ns", "name")
    assert parse_id("name") == ("", "name")
    with pytest.raises(ProviderError, match="namespace/name"):
        parse_id("a/b/c")
