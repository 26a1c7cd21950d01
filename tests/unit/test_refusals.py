"""The texts of all settings errors are exactly those in `tests/unit/refusals`."""

from __future__ import annotations

import difflib

import pytest

from tests.unit.refusals import FOLDER, TABLES, texts


@pytest.mark.parametrize("name", TABLES)
def test_what_is_said_of_each_mistake(name: str) -> None:
    before, after = (FOLDER / f"{name}.txt").read_text().splitlines(), texts(name).splitlines()
    changed = "\n".join(difflib.unified_diff(before, after, name, "now", n=1, lineterm=""))
    assert not changed, f"if this is meant, `make snapshots` writes it; commit it with the change\n{changed}"


def test_each_text_is_of_a_table() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(TABLES)
