"""Update, replace or leave alone: the decisions, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.plugin.wire import UNKNOWN
from emulator.provider import diffing
from emulator.provider.objects import prune


def manifest(kind: str = "ConfigMap", api_version: str = "v1", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "n", "namespace": "ns"}, **rest}


def compare(
    old: dict[str, Any],
    new: dict[str, Any],
    live: dict[str, Any] | None = None,
    *,
    identifier: str = "ns/n",
    patch: bool = False,
    mutable: bool = True,
    ignore: tuple[str, ...] = (),
) -> tuple[dict[str, str], bool]:
    """Return the changes as path -> kind, with ! where it replaces, and whether the old object is deleted first."""
    difference = diffing.compare(
        prune(live or old, old),
        identifier,
        new,
        patch=patch,
        rules=diffing.Rules(config_map_mutable=mutable, secret_mutable=mutable),
        ignore=list(ignore),
    )
    found = {path: change.kind + "!" * change.replaces for path, change in difference.changes.items()}
    return found, difference.delete_before_replace


ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(manifest(data={"a": "1"}), manifest(data={"a": "1"}), {}, id="same"),
        pytest.param(manifest(data={"a": "1"}), manifest(data={"a": "2"}), {"data.a": "UPDATE"}, id="update"),
        pytest.param(manifest(data={}), manifest(data={"a.b": "2"}), {'data["a.b"]': "ADD"}, id="add, quoted key"),
        pytest.param(manifest(data={"a": "1"}), manifest(data={}), {"data.a": "DELETE"}, id="delete"),
        pytest.param(manifest(data={"a": "1"}), manifest(), {"data": "DELETE"}, id="delete whole"),
        pytest.param(manifest(data={"a": "1"}), manifest(data={"a": UNKNOWN}), {"data.a": "UPDATE"}, id="unknown"),
        pytest.param(
            manifest(spec={"l": [1, 2]}),
            manifest(spec={"l": [1, 3, 4]}),
            {"spec.l[1]": "UPDATE", "spec.l[2]": "ADD"},
            id="list",
        ),
        pytest.param(
            manifest(spec={"l": [1, 2]}), manifest(spec={"l": [1]}), {"spec.l[1]": "DELETE"}, id="shorter list"
        ),
        pytest.param(manifest(spec={"n": 1}), manifest(spec={"n": 1.0}), {}, id="equal numbers"),
        pytest.param(
            manifest("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef=ROLE_REF),
            manifest("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={**ROLE_REF, "name": "b"}),
            {"roleRef.name": "UPDATE!"},
            id="roleRef",
        ),
        pytest.param(
            manifest("Deployment", "apps/v1", spec={"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}),
            manifest("Deployment", "apps/v1", spec={"replicas": 2, "selector": {"matchLabels": {"a": "c"}}}),
            {"spec.replicas": "UPDATE", "spec.selector.matchLabels.a": "UPDATE!"},
            id="deployment selector",
        ),
        pytest.param(
            manifest("Pod", spec={"containers": [{"name": "c", "image": "a"}]}),
            manifest("Pod", spec={"containers": [{"name": "c", "image": "b"}]}),
            {"spec.containers[0].image": "UPDATE!"},
            id="pod image",
        ),
        pytest.param(
            manifest("Job", "batch/v1", spec={"template": {"x": 1}, "backoffLimit": 1}),
            manifest("Job", "batch/v1", spec={"template": {"x": 2}, "backoffLimit": 2}),
            {"spec.template.x": "UPDATE!", "spec.backoffLimit": "UPDATE"},
            id="job template",
        ),
        pytest.param(
            manifest("PersistentVolume", spec={}),
            manifest("PersistentVolume", spec={"hostPath": {"path": "/x"}}),
            {"spec.hostPath": "ADD!"},
            id="added volume source",
        ),
        pytest.param(
            manifest("PersistentVolume"),
            manifest("PersistentVolume", spec={"hostPath": {"path": "/x"}}),
            {"spec": "ADD!"},
            id="added parent of a forcing property",
        ),
        pytest.param(
            manifest("ClusterQueue", "kueue.x-k8s.io/v1beta2", spec={"selector": 1}),
            manifest("ClusterQueue", "kueue.x-k8s.io/v1beta2", spec={"selector": 2}),
            {"spec.selector": "UPDATE"},
            id="custom resources are never replaced for their spec",
        ),
    ],
)
def test_changes(old: dict[str, Any], new: dict[str, Any], expected: dict[str, str]) -> None:
    found, _ = compare(old, new)
    assert found == expected


def test_the_live_object_counts_only_where_the_old_inputs_have_something() -> None:
    old = manifest(data={"a": "1"})
    live = {**manifest(data={"a": "by hand", "b": "added"}), "status": {"x": 1}}
    assert compare(old, old, live) == ({"data.a": "UPDATE"}, False)
    assert compare(old, old, {**manifest(data={"a": "1", "b": "added"}), "status": {}}) == ({}, False)
    assert compare(old, old, manifest(data={})) == ({"data.a": "ADD"}, False)


def test_names_and_namespaces() -> None:
    renamed = manifest()
    renamed["metadata"] = {"name": "other", "namespace": "ns"}
    assert compare(manifest(), renamed) == ({"metadata.name": "UPDATE!"}, False)
    moved = manifest()
    moved["metadata"] = {"name": "n", "namespace": "elsewhere"}
    assert compare(manifest(), moved) == ({"metadata.namespace": "UPDATE!"}, False)
    unnamed_space = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}
    assert compare(unnamed_space, unnamed_space, identifier="default/n") == ({}, False)
    cluster_wide = manifest("Namespace")
    assert compare(unnamed_space, cluster_wide | {"kind": "ConfigMap"}, identifier="n") == ({}, False)


def test_a_replacement_of_the_same_name_deletes_first_unless_the_name_was_made_up() -> None:
    kind = {"kind": "RoleBinding", "api_version": "rbac.authorization.k8s.io/v1"}
    old, new = manifest(**kind, roleRef=ROLE_REF), manifest(**kind, roleRef={**ROLE_REF, "name": "b"})
    assert compare(old, new)[1] is True
    for each in (old, new):
        each["metadata"] = {**each["metadata"], "annotations": {"pulumi.com/autonamed": "true"}}
    assert compare(old, new)[1] is False


@pytest.mark.parametrize(
    ("kind", "field", "mutable", "immutable", "replaces"),
    [
        ("ConfigMap", "data", True, False, False),
        ("ConfigMap", "data", False, False, True),
        ("ConfigMap", "data", True, True, True),
        ("Secret", "data", True, False, False),
        ("Secret", "data", False, False, True),
        ("Secret", "type", True, False, True),
    ],
)
def test_config_maps_and_secrets(kind: str, field: str, mutable: bool, immutable: bool, replaces: bool) -> None:
    extra = {"immutable": True} if immutable else {}
    value, other = ("a", "b") if field == "type" else ({"k": "1"}, {"k": "2"})
    found, _ = compare(
        manifest(kind, **{field: value}, **extra), manifest(kind, **{field: other}, **extra), mutable=mutable
    )
    assert [change.endswith("!") for change in found.values()] == [replaces]


def test_patch_resources_are_replaced_for_their_identity_only() -> None:
    old, new = manifest("Pod", spec={"nodeName": "a"}), manifest("Pod", spec={"nodeName": "b"})
    assert compare(old, new, patch=True)[0] == {"spec.nodeName": "UPDATE"}
    assert compare(old, new)[0] == {"spec.nodeName": "UPDATE!"}


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ((), {"spec.l[0].q", "metadata.annotations"}),
        (("spec.l[*].q",), {"metadata.annotations"}),
        (("spec.l[0].q",), {"metadata.annotations"}),
        (("spec",), {"metadata.annotations"}),
        (("spec.l[1].q", "spec.other"), {"spec.l[0].q", "metadata.annotations"}),
        (("metadata.annotations", "spec.l"), set()),
    ],
)
def test_ignored_changes(ignore: tuple[str, ...], left: set[str]) -> None:
    old, new = manifest(spec={"l": [{"q": "1"}]}), manifest(spec={"l": [{"q": "2"}]})
    new["metadata"] = {**new["metadata"], "annotations": {"a": "b"}}
    found, _ = compare(old, new, ignore=ignore)
    assert set(found) == left
