"""The texts of all settings errors are exactly those in `tests/unit/refusals`, and valid settings have no error."""

import difflib
from typing import Any

import pytest

from tests.unit.configurations import errors_of
from tests.unit.refusals import FOLDER, TABLES, texts
from tests.unit.refusals.cases import cases


@pytest.mark.parametrize("name", TABLES)
def test_what_is_said_of_each_mistake(name: str) -> None:
    before, after = (FOLDER / f"{name}.txt").read_text().splitlines(), texts(name).splitlines()
    changed = "\n".join(difflib.unified_diff(before, after, name, "now", n=1, lineterm=""))
    assert not changed, f"if this is meant, `make snapshots` writes it; commit it with the change\n{changed}"


def test_each_text_is_of_a_table() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(TABLES)


@pytest.mark.parametrize("raw", list(cases("accepted")), ids=str)
def test_unusual_settings_are_accepted(raw: dict[str, Any]) -> None:
    assert [str(error) for error in errors_of(raw)] == []
