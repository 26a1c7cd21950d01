"""The emulated providers replace for the same inputs as the review says that the official ones do."""

from __future__ import annotations

import itertools

import pytest

from emulator.azure import schema
from emulator.azure.services import KINDS
from emulator.provider import replacement
from review import immutable, paths
from review.replacement import azure_type

OBJECTS = sorted({*replacement._PATHS, ("", "v1", "ConfigMap"), ("", "v1", "Namespace"), ("kueue.x-k8s.io", "v1", "X")})


@pytest.mark.parametrize("token", sorted(KINDS))
def test_the_emulated_azure(token: str) -> None:
    kind = KINDS[token]
    forcing = {paths.parse(each.replace("[]", "[*]")) for each in (*kind.parameters, *kind.replaces)}
    # What lies below another one that forces is said by that one.
    forcing = {each for each in forcing if not any(paths.contains(o, each) for o in forcing if o != each)}
    named = azure_type(token)
    assert named is not None
    for top in schema.resource(token).inputs:
        assert set(immutable.of_azure(named, top)) == {each for each in forcing if each[0] == top}, top


@pytest.mark.parametrize(("group", "version", "kind"), OBJECTS)
@pytest.mark.parametrize(("patch", "maps", "secrets", "marked"), list(itertools.product((False, True), repeat=4)))
def test_the_emulated_kubernetes_provider(
    group: str, version: str, kind: str, patch: bool, maps: bool, secrets: bool, marked: bool
) -> None:
    manifest = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, "immutable": marked}
    options = {"patch": patch, "config_map_mutable": maps, "secret_mutable": secrets}
    assert set(immutable.of_object(manifest, **options)) == set(replacement.forcing_paths(manifest, **options))


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("spec.template", {}),
        ("spec.template.spec.containers[0].image", "x"),
        ("spec", {"template": {}}),
        ("spec", {"parallelism": 2}),
        ("spec.backoffLimit", 2),
        ("metadata.name", "x"),
        ("metadata.labels", {"a": "b"}),
    ],
)
def test_a_change_above_or_below_counts_alike(changed: str, value: object) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job"}
    options = {"patch": False, "config_map_mutable": True, "secret_mutable": True}
    path = paths.parse(changed)
    ours = any(paths.touches(path, value, each) for each in immutable.of_object(job, **options))
    assert ours is replacement.forces(path, value, replacement.forcing_paths(job, **options))
