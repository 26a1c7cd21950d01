"""The documentation of settings matches the models, and an editor's schema flags what the program rejects."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from components.kubernetes.quantity import Quantity, QuantityError
from reference import page
from reference.files import files
from reference.schema import SECRETS, schema, sections
from stacks.config.exposure import exposed
from stacks.targets.registry import SECRET_KEYS, TARGETS
from tests.unit.configurations import errors_of
from tests.unit.tables import table

ROOT = Path(__file__).parents[2]
SCHEMA = schema()
VALIDATOR = Draft7Validator(SCHEMA)
STACKS = sorted(ROOT.glob("Pulumi.*.yaml"))
HOOK = "# yaml-language-server: $schema=settings.schema.json\n"
UNITS = re.compile(
    r"\b(GiB|TiB|KiB|bytes|GB/s|GPUs|cores|devices|heads|ports|seconds|minutes|hours|days|weeks|steps|tokens|number of|"
    r"(many|most|fewest) (nodes|pods|services|volumes|dimensions|layers))\b",
    re.IGNORECASE,
)
UNITLESS = {"learning_rate", "option", "nodeExporterPort", "retries", "share", "user"}
"""Numbers without a unit: a fraction, a factor, and a user's number."""


def stack(target: str) -> dict[str, Any]:
    """Return a stack's file from the examples."""
    found: dict[str, Any] = yaml.safe_load(page.example(target))
    return found


def flagged(file: Mapping[str, Any]) -> list[str]:
    """Return the schema's errors and their paths. For a value with several types, the errors of each."""
    errors = [each for error in VALIDATOR.iter_errors(file) for each in (error, *(error.context or ()))]
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def keys() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield all keys: the section's model, the key and its description."""
    for model, definition in SCHEMA["definitions"].items():
        if model != "secret":
            for key, said in definition.get("properties", {}).items():
                yield model, key, said


def kinds(said: Mapping[str, Any]) -> set[str]:
    options = [said, *said.get("anyOf", ())]
    return {kind for option in options for kind in (option.get("type"),) if isinstance(kind, str)} | {
        "quantity" for option in options if option.get("type") == ["string", "number"]
    }


@pytest.mark.parametrize("name", sorted(files()))
def test_the_files_are_current(name: str) -> None:
    assert (ROOT / name).read_text() == files()[name], "run `make settings`"


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(SCHEMA)


def test_every_key_has_words_and_the_page_has_them() -> None:
    text = files()["docs/settings.md"]
    for model, key, said in keys():
        assert said.get("description"), (model, key)
        assert f"| `{key}` |" in text, (model, key)
        assert said["description"] in text, (model, key)


def test_every_amount_has_a_unit() -> None:
    amounts = [(m, key, said) for m, key, said in keys() if {"integer", "quantity"} & kinds(said)]
    assert len(amounts) > 50
    for model, key, said in amounts:
        assert UNITS.search(said["description"]) or key in UNITLESS, (model, key, said["description"])


def test_every_section_and_secret_is_there() -> None:
    text = files()["docs/settings.md"]
    assert set(SECRETS) == set(SECRET_KEYS)
    for spec in TARGETS.values():
        assert [name for name in sections() if name in spec.sections] == list(spec.sections)
        assert f"| `{spec.name}` | {spec.summary} |" in text
    for name, owners in sections().items():
        assert f"\n## mlbatch:{name}\n" in text
        assert f"| {', '.join(spec.name for spec in owners)} |" in text


@pytest.mark.parametrize("target", TARGETS)
def test_an_example_has_every_section_and_no_mistake(target: str) -> None:
    config = {name.removeprefix("mlbatch:"): value for name, value in stack(target)["config"].items()}
    assert set(config) == {"target", *TARGETS[target].sections}
    assert [str(error) for error in errors_of(config)] == []
    assert flagged(stack(target)) == []


def test_every_section_shows_keys_in_its_example() -> None:
    for name, owners in sections().items():
        assert stack(owners[0].name)["config"][f"mlbatch:{name}"], name


@pytest.mark.parametrize("file", STACKS, ids=lambda file: str(file.name))
def test_a_shipped_stack_is_hooked_up_and_without_a_mistake(file: Path) -> None:
    assert file.read_text().startswith(HOOK), f"let {file.name} begin with {HOOK}"
    assert flagged(yaml.safe_load(file.read_text())) == []


def test_what_pulumi_writes_itself_is_no_mistake() -> None:
    file = stack("simulated") | {"encryptionsalt": "v1:x", "secretsprovider": "passphrase", "environment": ["a"]}
    file["config"] |= {"kubernetes:namespace": "a", "mlbatch:grafanaPassword": {"secure": "v1:x"}}
    assert flagged(file) == []


MISTAKES: Mapping[str, tuple[str, tuple[str | int, ...], object, str]] = table("reference", "mistakes")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_flagged_by_editor_and_program(mistake: str) -> None:
    target, (section, *path), value, said = MISTAKES[mistake]
    file = deepcopy(stack(target))
    place, part = file["config"], section
    for following in path:
        place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
        part = following
    place[part] = value
    assert any(said in text for text in flagged(file)), flagged(file)
    config = {name.removeprefix("mlbatch:"): content for name, content in file["config"].items()}
    assert [*exposed(config), *errors_of(config)]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_required_is_flagged(target: str) -> None:
    file = stack(target)
    del file["config"]["mlbatch:target"]
    assert flagged(file) == ["config: 'mlbatch:target' is a required property"]


def test_azure_is_required_on_aks() -> None:
    assert flagged({"config": {"mlbatch:target": "aks"}}) == ["config: 'mlbatch:azure' is a required property"]


@pytest.mark.parametrize("text", ["8", "500m", "2000G", "128Gi", ".5", "1.", "+1", "1e3", "1E-3", "1E", "0"])
def test_the_pattern_of_quantities_takes_what_the_program_takes(text: str) -> None:
    Quantity.parse(text)
    assert not list(QUANTITY.iter_errors(text))


@pytest.mark.parametrize("text", ["", ".", "-1", "8 Gi", "2000GB", "1K", "ten", "1e", "8\n"])
def test_the_pattern_of_quantities_refuses_what_the_program_refuses(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)
    assert list(QUANTITY.iter_errors(text)) or text.endswith("\n")


QUANTITY = Draft7Validator(SCHEMA["definitions"]["QuotaSettings"]["properties"]["cpu"])


def test_a_default_is_what_the_program_takes_and_gives() -> None:
    """Each default in the schema is valid for the schema of its key."""
    for model, key, said in keys():
        if "default" in said:
            own = {**json.loads(json.dumps(said)), "definitions": SCHEMA["definitions"]}
            assert not list(Draft7Validator(own).iter_errors(said["default"])), (model, key)
