"""A cause with many dependent changes appears once, with counts, and the review stays short."""

from typing import Any

from review.compare import compare
from review.plan import Plan
from runner.properties import UNKNOWN
from tests.unit.test_review import CONFIG, PROVIDER, cluster, manifest, plan, provider, shown, state


def test_what_is_replaced_with_a_cluster_has_it_as_its_cause() -> None:
    """The objects of a cluster that the stack makes: the provider stays, the cluster behind it does not."""
    urn = cluster()["urn"]
    objects = [manifest(CONFIG, name, replaceWith=[urn]) for name in ("a", "b")]
    moved = [cluster(location="westus"), provider(), *objects]
    changes = compare(plan(cluster(), provider(), *objects), plan(*moved)).changes
    assert [(each.resource.name, each.operation, each.because) for each in changes] == [
        ("aks", "replace", ""),
        ("a", "replace", "ManagedCluster aks is replaced"),
        ("b", "replace", "ManagedCluster aks is replaced"),
    ]
    assert [each.cause.name if each.cause else None for each in changes] == [None, "aks", "aks"]


def test_the_cause_at_the_root_counts_and_not_what_lies_between() -> None:
    urn = cluster()["urn"]
    behind = provider() | {"replaceWith": [urn]}
    stack = [cluster(), behind, manifest(CONFIG, "a")]
    changes = compare(plan(*stack), plan(cluster(location="westus"), *stack[1:])).changes
    found = {each.resource.name: (each.because, each.cause.name if each.cause else None) for each in changes}
    assert found == {
        "aks": ("", None),
        "cluster": ("ManagedCluster aks is replaced", "aks"),
        "a": ("kubernetes cluster is replaced", "aks"),
    }


def test_what_is_deleted_with_its_owner_has_it_as_its_cause() -> None:
    inner = manifest(CONFIG, "a", deletedWith=cluster()["urn"])
    changes = compare(plan(cluster(), inner, manifest(CONFIG, "b")), plan()).changes
    assert {each.resource.name: (each.because, each.cause.name if each.cause else None) for each in changes} == {
        "aks": ("", None),
        "a": ("ManagedCluster aks is deleted", "aks"),
        "b": ("", None),
    }


def test_a_provider_of_another_name_is_the_cause_unless_it_is_an_alias() -> None:
    other = {**provider(), "urn": PROVIDER.replace("::cluster", "::other")}
    moved = {**manifest(CONFIG, "a"), "provider": f"{other['urn']}::{UNKNOWN}"}
    before = plan(provider(), manifest(CONFIG, "a"))
    changes = {each.resource.name: each for each in compare(before, plan(other, moved)).changes}
    assert {name: str(each.operation) for name, each in changes.items()} == {
        "other": "create",
        "a": "replace",
        "cluster": "delete",
    }
    assert changes["a"].cause == changes["other"].resource
    renamed = {**other, "aliases": [PROVIDER]}
    assert not compare(before, plan(renamed, moved)).changes


def large(teams: int, **inputs: Any) -> Plan:
    """Return a cluster with a namespace, a claim and two queues for each team, which go with it, and three more."""
    more = {"replaceWith": [cluster()["urn"]], "deletedWith": cluster()["urn"]}
    states = [cluster(**inputs), provider()]
    for index in range(teams):
        name = f"team-{index:03}"
        team = state("mlbatch:tenancy:Team", name)
        kinds = ("core/v1:Namespace", "core/v1:PersistentVolumeClaim", CONFIG, "core/v1:ServiceAccount")
        states += [team, *(manifest(kind, f"{name}-{kind}", parent=team["urn"], **more) for kind in kinds)]
    nodes = state("mlbatch:nodes:Operator", "nodes")
    states += [nodes, *(manifest(CONFIG, name, parent=nodes["urn"], **more) for name in ("x", "y", "z"))]
    return plan(*states)


def test_one_cause_of_many_replacements_is_said_once_with_counts_by_layer_and_team() -> None:
    text = shown(large(100), large(100, location="westus"))
    (warning,) = [line for line in text.splitlines() if line.startswith("> - ")]
    assert warning == (
        "> - `aks`: **replace `ManagedCluster aks`**, which loses the cluster with everything in it. Why: location "
        "cannot be changed in place. **With it 403 resources are replaced**: nodes 3, tenancy 400. Among them: 100 "
        "`Namespace` (every object in it: jobs, claims on volumes, secrets); 100 `PersistentVolumeClaim` (the claim; "
        "the volume's reclaim policy decides about the data)."
    )
    rows = [line for line in text.splitlines() if line.startswith("| ") and "resource" in line]
    named = ", ".join(f"`team-{index:03}`" for index in range(5))
    assert rows[-2:] == [
        "| nodes |  | **replaced** | 3 resources (with `ManagedCluster aks`) |",
        f"| tenancy | {named} and 95 more | **replaced** | 400 resources, 4 of each team (with `ManagedCluster aks`) |",
    ]
    assert "| azure |  | **replaced** | `ManagedCluster aks` |" in text
    assert len(text) < 2500
    assert "does not fit" not in text


def test_one_cause_of_many_deletions_is_said_once() -> None:
    text = shown(large(300), plan())
    assert "**delete `ManagedCluster aks`**" in text
    assert "**With it 1203 resources are deleted**: nodes 3, tenancy 1200." in text
    assert text.count("team-") == 5
    assert len(text) < 2500


def test_what_goes_along_and_is_protected_is_said_to_stop_the_update() -> None:
    inner = [manifest("core/v1:Namespace", name, replaceWith=[cluster()["urn"]], protect=True) for name in "ab"]
    text = shown(plan(cluster(), *inner), plan(cluster(location="westus"), *inner))
    assert "2 of them are protected, so the update fails." in text


def test_losses_of_one_kind_are_told_together() -> None:
    states = [manifest("core/v1:Namespace", f"team-{index}") for index in range(7)]
    text = shown(plan(*states), plan())
    (warning,) = [line for line in text.splitlines() if line.startswith("> - ")]
    assert warning == (
        "> - `aks`: **delete 7 `Namespace`** (`Namespace team-0`, `Namespace team-1`, `Namespace team-2`, "
        "`Namespace team-3`, `Namespace team-4` and 2 more), each of which loses every object in it: jobs, claims on "
        "volumes, secrets. Why: the new revision does not declare it."
    )


def test_the_same_change_of_many_resources_is_told_once() -> None:
    before, after = (
        plan(provider(), *(manifest(CONFIG, f"map-{index}", {"data": {"k": value}}) for index in range(7)))
        for value in ("1", "2")
    )
    text = shown(before, after)
    assert text.count("data.k") == 1
    named = ", ".join(f"`ConfigMap map-{index}`" for index in range(5))
    assert f'- {named} and 2 more changed\n  - `data.k`: `"1"` → `"2"`\n' in text
