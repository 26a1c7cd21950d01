"""Field managers: take-over, ignored changes, conflicts."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.provider import ownership
from emulator.provider.errors import ApiError

OWN = "pulumi-kubernetes-0123abcd"


def entry(manager: str, operation: str, fields: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **rest}


def live(*entries: dict[str, Any], **rest: Any) -> dict[str, Any]:
    metadata = {"name": "n", "resourceVersion": "7", "managedFields": list(entries)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **rest}


def test_a_manager_is_the_annotated_the_recorded_or_a_new_one() -> None:
    annotated = {"metadata": {"annotations": {"pulumi.com/patchFieldManager": "mine"}}}
    assert ownership.manager_for(annotated, OWN) == "mine"
    assert ownership.manager_for({}, OWN) == OWN
    made_up = ownership.manager_for({}, "")
    assert made_up.startswith("pulumi-kubernetes-")
    assert len(made_up) == len(OWN)


def test_the_first_update_takes_the_fields_of_the_create_over() -> None:
    created = entry("pulumi-kubernetes", "Update", {"f:data": {"f:a": {}}})
    controller = entry("controller", "Update", {"f:status": {}}, subresource="status")
    patch = ownership.transfer(live(created, controller), OWN)
    fields, version = patch
    assert version == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    assert fields["value"] == [
        controller,
        {
            "manager": OWN,
            "operation": "Apply",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        },
    ]


def test_taken_over_fields_join_those_already_owned() -> None:
    own = entry(OWN, "Apply", {"f:data": {"f:b": {}}})
    kubectl = entry("kubectl", "Apply", {"f:data": {"f:a": {}}})
    value = ownership.transfer(live(own, kubectl), OWN)[0]["value"]
    assert [each["fieldsV1"] for each in value] == [{"f:data": {"f:a": {}, "f:b": {}}}]


def test_nothing_is_taken_from_others() -> None:
    assert ownership.transfer(live(entry(OWN, "Apply", {}), entry("kubectl-edit", "Update", {"f:data": {}})), OWN) == []


FORCED = {"metadata": {"annotations": {"pulumi.com/patchForce": "true"}}}


@pytest.mark.parametrize(
    ("inputs", "existing", "always", "preview", "expected"),
    [
        ({}, live(entry(OWN, "Apply", {})), False, False, False),
        (FORCED, live(entry(OWN, "Apply", {})), False, False, True),
        ({}, live(entry(OWN, "Apply", {})), True, False, True),
        ({}, None, False, True, True),
        ({}, None, False, False, False),
        ({}, live(entry("pulumi-kubernetes", "Update", {})), False, True, True),
        ({}, live(entry("pulumi-kubernetes", "Update", {})), False, False, False),
        ({}, live(), False, False, True),
    ],
)
def test_when_an_apply_is_forced(
    inputs: dict[str, Any], existing: dict[str, Any] | None, always: bool, preview: bool, expected: bool
) -> None:
    assert ownership.forced(inputs, existing, always=always, preview=preview) is expected


def test_ignored_fields_of_others_are_left_out_and_shared_ones_keep_their_live_value() -> None:
    inputs = {"spec": {"replicas": 3, "paused": False, "other": 1}}
    existing = live(
        entry(OWN, "Apply", {"f:spec": {"f:paused": {}, "f:other": {}}}),
        entry("autoscaler", "Update", {"f:spec": {"f:replicas": {}, "f:paused": {}}}),
        spec={"replicas": 9, "paused": True, "other": 2},
    )
    ignore = ["spec.replicas", "spec.paused", "spec.list[*].x", "spec.absent"]
    assert ownership.honour_ignored(inputs, existing, OWN, ignore) == {"spec": {"paused": True, "other": 1}}
    assert inputs == {"spec": {"replicas": 3, "paused": False, "other": 1}}, "the inputs of the engine must not change"


def test_a_conflict_names_fields_managers_and_ways_out() -> None:
    cause = {"reason": "FieldManagerConflict", "field": ".data.a", "message": 'conflict with "kubectl-edit" using v1'}
    error = ApiError(409, {"reason": "Conflict", "message": "conflict", "details": {"causes": [cause]}})
    message = str(ownership.explained(error, OWN))
    for part in (OWN, '.data.a: conflict with "kubectl-edit"', "ignoreChanges", "pulumi.com/patchForce"):
        assert part in message


def test_other_failures_stay_as_they_are() -> None:
    error = ApiError(422, {"reason": "Invalid", "message": "no"})
    assert ownership.explained(error, OWN) is error
