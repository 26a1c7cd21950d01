"""A table in YAML has only keys and values that the program knows."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from components.tables import Table
from stacks.config import engine_yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "components").rglob("*.yaml"))


@dataclass(frozen=True, kw_only=True)
class Machine:
    name: str
    gpus: int = 0
    regions: frozenset[str] | None = None


class Machines(Table):
    machines: tuple[Machine, ...]


def test_a_table_is_a_value_with_types() -> None:
    found = Machines.parse("machines: [{name: a, gpus: 8, regions: [x, y]}, {name: b}]")
    assert found.machines == (Machine(name="a", gpus=8, regions=frozenset({"x", "y"})), Machine(name="b"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("machines: [{name: a, cores: 8}]", r"machines\.0\.cores\n  Unexpected keyword argument"),
        ("machines: [{name: 1.25}]", r"machines\.0\.name\n  Input should be a valid string"),
        ("machines: [{name: a, gpus: '8'}]", r"machines\.0\.gpus\n  Input should be a valid integer"),
        ("machines: [{gpus: 8}]", r"machines\.0\.name\n  Field required"),
        ("machines: {name: a}", r"machines\n  Input should be a valid array"),
        ("machines: []\nvolumes: []", r"volumes\n  Extra inputs are not permitted"),
        ("{}", r"machines\n  Field required"),
    ],
)
def test_unknown_keys_and_other_types_are_errors(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Machines.parse(text)


def test_an_error_names_the_file() -> None:
    with pytest.raises(ValueError, match=r"components/catalogue\.yaml: \d+ validation errors for Machines\n"):
        Machines.load("components.catalogue")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_key_stands_twice_and_no_value_depends_on_the_version_of_yaml(file: Path) -> None:
    text = file.read_text()
    assert engine_yaml.load(text) == yaml.safe_load(text)
