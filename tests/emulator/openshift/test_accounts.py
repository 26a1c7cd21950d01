"""The service accounts of each namespace in OpenShift."""

from typing import Any

from emulator.openshift.accounts import lacking

BLUE: dict[str, Any] = {"metadata": {"name": "blue"}}
BINDINGS = {"system:image-builders", "system:deployers", "system:image-pullers"}


def made(namespace: dict[str, Any], accounts: set[str], bindings: set[str]) -> dict[tuple[str, str], Any]:
    """Return the objects created in a namespace that already has these, by kind and name."""
    there = [{("blue", name) for name in names} for names in (accounts, bindings)]
    return {(each["kind"], each["metadata"]["name"]): each for each in lacking([namespace], *there)}


def test_a_new_namespace_gets_two_accounts_with_their_rights() -> None:
    found = made(BLUE, set(), set())
    assert {name for kind, name in found if kind == "ServiceAccount"} == {"builder", "deployer"}
    assert {name for kind, name in found if kind == "RoleBinding"} == BINDINGS
    deployer = found["RoleBinding", "system:deployers"]
    assert deployer["roleRef"]["name"] == "system:deployer"
    assert deployer["subjects"] == [{"kind": "ServiceAccount", "namespace": "blue", "name": "deployer"}]
    (everybody,) = found["RoleBinding", "system:image-pullers"]["subjects"]
    assert (everybody["kind"], everybody["name"]) == ("Group", "system:serviceaccounts:blue")


def test_deleted_objects_are_created_again_and_the_others_stay() -> None:
    assert made(BLUE, {"builder", "deployer"}, BINDINGS) == {}
    assert made(BLUE, {"builder"}, BINDINGS).keys() == {("ServiceAccount", "deployer")}
    assert made(BLUE, {"builder", "deployer"}, BINDINGS - {"system:deployers"}).keys() == {
        ("RoleBinding", "system:deployers")
    }


def test_a_namespace_that_is_being_deleted_gets_no_objects() -> None:
    going = {"metadata": {"name": "blue", "deletionTimestamp": "2026-11-22T10:00:00Z"}}
    assert made(going, set(), set()) == {}
