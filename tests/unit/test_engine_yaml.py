"""A stack's file is read without the engine as the engine reads it.

What is wanted here is what `pulumi config --json` (3.230.0) printed for the same texts.
"""

from pathlib import Path

import pytest

from stacks.config import engine_yaml
from stacks.config.stack_file import configuration

READ = {
    "[yes, No, on, OFF, y, n]": ["yes", "No", "on", "OFF", "y", "n"],
    "[true, True, FALSE, ~, null, Null, ]": [True, True, False, None, None, None],
    "{empty: , quoted: '', a: 'yes', b: \"5\"}": {"empty": None, "quoted": "", "a": "yes", "b": "5"},
    "[22:00, 1:30, 1_0:20, 1.5.2, 10.0.0.0/16, 1Gi, 12e, =]": [
        *("22:00", "1:30", "1_0:20", "1.5.2", "10.0.0.0/16", "1Gi", "12e", "="),
    ],
    "[-5, +7, 0, 1_000, 1__0, 0_7, 0777, -0o17, 0O17]": [-5, 7, 0, 1000, 10, 7, 511, -15, 15],
    "[0x1F, +0x1F, 0X1F, 0b101, 0x, 0b12, 08, 09.5]": [31, 31, 31, 5, "0x", "0b12", 8, 9.5],
    "[1.5, 1e3, 1., .5, +.5, -.5e1, 1_0.5, 1e400, 1e21]": [1.5, 1000, 1, 0.5, 0.5, -5, 10.5, "1e400", 1e21],
    "[2026-01-05, 2026-1-5, 2026-02-30, 2026-13-45]": [
        *("2026-01-05 00:00:00 +0000 UTC", "2026-01-05 00:00:00 +0000 UTC", "2026-02-30", "2026-13-45"),
    ],
    "[2026-01-05 03:04:05, 2026-01-05 03:04:05.500]": [
        *("2026-01-05 03:04:05 +0000 UTC", "2026-01-05 03:04:05.5 +0000 UTC"),
    ],
    "[2026-01-05T03:04:05Z, 2026-01-05T03:04:05+00:00, 2026-01-05t3:4:5.25-05:30]": [
        *("2026-01-05 03:04:05 +0000 UTC", "2026-01-05 03:04:05 +0000 UTC", "2026-01-05 03:04:05.25 -0530 -0530"),
    ],
    "[2026-01-05T03:04:05, 2026-01-05 03:04:05 +0100]": ["2026-01-05T03:04:05", "2026-01-05 03:04:05 +0100"],
    "{<<: {a: 1, b: 2}, b: 3}": {"a": 1, "b": 3},
}


@pytest.mark.parametrize("text", READ)
def test_values_are_those_that_the_engine_hands_over(text: str) -> None:
    found = engine_yaml.load(text)
    assert found == READ[text]
    assert repr(found) == repr(READ[text]), "true is no 1, and 1 no 1.0"


@pytest.mark.parametrize(
    "text",
    [
        'config:\n  mlbatch:nodes: {count: 2, "count": 3}\n',
        "config:\n  mlbatch:teams: []\n  mlbatch:teams: []\n",
        "config: {}\nconfig:\n  mlbatch:teams: []\n",
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.mysite.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"Pulumi.mysite.yaml: line [23], column \d+ is not valid YAML: duplicate key"):
        configuration("mysite", tmp_path)


def test_keys_of_a_mapping_may_repeat_in_another(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.mysite.yaml").write_text("config:\n  mlbatch:teams: [{a: &a {b: 1}}, {a: {<<: *a, b: 2}}]\n")
    assert configuration("mysite", tmp_path) == {"teams": [{"a": {"b": 1}}, {"a": {"b": 2}}]}
