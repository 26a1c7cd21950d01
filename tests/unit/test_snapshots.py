"""What a change does to the identity of resources, and to what pods run, is seen in its diff."""

from __future__ import annotations

import difflib

import pytest

from tests.unit.snapshots import FOLDER, snapshots
from tests.unit.whole_stacks import STACKS, registered


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_is_what_its_snapshot_shows(stack: str) -> None:
    for file, text in snapshots(stack, registered(stack)).items():
        lines = difflib.unified_diff(
            file.read_text().splitlines(), text.splitlines(), file.name, "now", n=1, lineterm=""
        )
        changed = "\n".join(lines)
        assert not changed, f"if this is meant, `make snapshots` writes it; commit it with the change\n{changed}"


def test_every_snapshot_is_of_a_stack() -> None:
    written = {file for stack in STACKS for file in snapshots(stack, registered(stack))}
    assert {*FOLDER.glob("*.txt"), *FOLDER.glob("*.yaml")} == written
