"""The diff shows every change of the identity or the declaration of resources."""

import difflib
import re

import pytest

from components.kubernetes.namespace import _FORMER_TYPES
from tests.unit.snapshots import FILES, FOLDER, ROOT, STACKS, WHOLE, snapshots
from tests.unit.whole_stacks import STACKS as KNOWN
from tests.unit.whole_stacks import registered


@pytest.mark.parametrize("name", FILES)
def test_the_stacks_are_what_their_snapshots_show(name: str) -> None:
    before, after = (FOLDER / name).read_text().splitlines(), snapshots(registered)[name].splitlines()
    changed = "\n".join(difflib.unified_diff(before, after, name, "now", n=1, lineterm=""))
    assert not changed, f"if this is meant, `make snapshots` writes it; commit it with the change\n{changed}"


def test_what_every_component_of_the_program_declares_is_in_a_snapshot() -> None:
    """But for the MLOps platform's, which is upstream's own."""
    texts = "\n".join(file.read_text() for file in (ROOT / "components").rglob("*.py"))
    shown = {item.type for stack in WHOLE for item in registered(stack).resources}
    assert set(re.findall(r'"(mlbatch:[a-z_]+:[A-Za-z0-9]+)"', texts)) - shown - set(_FORMER_TYPES) == {
        "mlbatch:mlops:MlopsPlatform"
    }


def test_every_stack_has_its_snapshot_and_no_other_is_left() -> None:
    assert set(STACKS) == KNOWN.keys()
    assert {file.name for file in [*FOLDER.glob("*.txt"), *FOLDER.glob("*.yaml")]} == set(FILES)
