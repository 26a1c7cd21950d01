"""The users, groups and labels of each namespace in OpenShift."""

from typing import Any

import pytest

from emulator.openshift.namespaces import GROUPS, MCS, UID_RANGE, allotted, lacks, next_block


def namespace(annotations: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "blue", **({"annotations": annotations} if annotations else {}), **metadata}}


@pytest.mark.parametrize(
    ("block", "users", "label"),
    [
        (0, "1000000000/10000", "s0:c1,c0"),
        (1, "1000010000/10000", "s0:c3,c2"),
        (66, "1000660000/10000", "s0:c26,c5"),  # the example in OpenShift's documentation
    ],
)
def test_users_and_label_of_a_block(block: int, users: str, label: str) -> None:
    assert allotted(block) == {UID_RANGE: users, GROUPS: users, MCS: label}


def test_no_two_namespaces_have_the_same_label() -> None:
    assert len({allotted(block)[MCS] for block in range(2000)}) == 2000


def test_the_first_block_that_is_free_is_next() -> None:
    taken = [namespace(allotted(0)), namespace(allotted(2)), namespace(), namespace({UID_RANGE: "by hand"})]
    assert next_block(taken) == 1
    assert next_block([*taken, namespace(allotted(1))]) == 3
    assert next_block([]) == 0


def test_a_namespace_with_an_allotment_or_in_deletion_is_not_changed() -> None:
    assert lacks(namespace())
    assert lacks(namespace({"owner": "alice"}))
    assert not lacks(namespace(allotted(7)))
    assert not lacks(namespace(deletionTimestamp="2026-11-22T10:00:00Z"))
