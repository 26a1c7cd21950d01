"""docs/settings.md: the schema and the examples as a page (settings.jinja)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from components.scripts import script
from reference.schema import SECRETS, secrets_of, sections
from stacks.config.errors import NAMESPACE, listed
from stacks.targets.registry import TARGETS
from stacks.targets.spec import TargetSpec

EXAMPLES: Final = Path(__file__).parent / "examples"
"""A complete configuration for each target, with all of its sections."""
_MOST_IN_A_CELL: Final = 10


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A key as the table shows it. values: its allowed values, if they are too many for a cell."""

    type: str
    default: str
    meaning: str
    values: tuple[str, ...] = ()


@dataclass
class _Table:
    """The keys of one mapping.

    targets: that have it. rows: by key, then by row, the targets with this row.
    """

    meaning: str
    targets: list[str] = field(default_factory=list)
    rows: dict[str, dict[_Row, list[str]]] = field(default_factory=dict)


class _Tables:
    """All tables, by path. A mapping with several paths appears at the first."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = schema["definitions"]
        self._homes: dict[str, str] = {}
        self.tables: dict[str, _Table] = {}
        config = schema["properties"]["config"]
        rules = zip(TARGETS.values(), config["allOf"], strict=True)
        conditions = {spec.name: rule["then"]["properties"] for spec, rule in rules}
        for name, owners in sections().items():
            for spec in owners:
                key = f"{NAMESPACE}:{name}"
                self._add(spec.name, name, conditions[spec.name].get(key, config["properties"][key]))

    def _add(self, target: str, path: str, schema: Mapping[str, Any]) -> None:
        definition = self._definitions[_mapping(schema) or ""]
        table = self.tables.setdefault(path, _Table(definition["description"]))
        table.targets.append(target)
        for key, value in definition["properties"].items():
            inner, place = _mapping(value), _below(path, key, value)
            home = self._homes.setdefault(inner, place) if inner else None
            row = self._row(key, value, home, is_required=key in definition.get("required", ()))
            table.rows.setdefault(key, {}).setdefault(row, []).append(target)
            if home == place:
                self._add(target, place, value)

    def _row(self, key: str, schema: Mapping[str, Any], home: str | None, *, is_required: bool) -> _Row:
        values = tuple(str(value) for value in self._plain(schema).get("enum", ()))
        default = "required" if is_required else _code(schema["default"]) if "default" in schema else ""
        meaning: str = schema["description"]
        if home is not None and meaning == self._definitions[_mapping(schema) or ""]["description"]:
            meaning = meaning.partition(". ")[0].rstrip(".") + "."  # its own table has the rest
        return _Row(
            type=self._type(schema, home, values),
            default=default,
            meaning=meaning,
            values=values if len(values) > _MOST_IN_A_CELL else (),
        )

    def _type(self, schema: Mapping[str, Any], home: str | None, values: tuple[str, ...]) -> str:
        plain = self._plain(schema)
        if plain.get("type") == "array":
            return f"list of {self._type(plain['items'], home, tuple(self._plain(plain['items']).get('enum', ())))}"
        if home is not None:
            return f"[mapping](#{_anchor(home)})"
        if plain.get("type") == "object":
            return f"mapping of names to {self._type(plain['additionalProperties'], None, ())}"
        if len(values) > _MOST_IN_A_CELL:
            return f"one of {len(values)}, see below"
        if values:
            return " or ".join(map(_code, values))
        kind = plain["type"]
        if kind == "integer":
            return f"whole number, {plain['minimum']} to {plain['maximum']}" if "minimum" in plain else "whole number"
        if kind == "number":
            return f"number, {plain['minimum']} to {plain['maximum']}"
        if kind == "boolean":
            return "`true` or `false`"
        if kind == ["string", "number"]:
            return "quantity"
        limits = f" of {plain['minLength']} to {plain['maxLength']} characters" if "minLength" in plain else ""
        return f"text{limits}" + (f" ({plain['patternErrorMessage']})" if "patternErrorMessage" in plain else "")

    def _plain(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema without `null`, and the definition of an enumeration in place of a reference."""
        schema = next((option for option in schema.get("anyOf", ()) if option.get("type") != "null"), schema)
        return self._definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def page(schema: Mapping[str, Any]) -> str:
    """Return the page of a schema."""
    return script(
        __name__,
        "settings",
        namespace=NAMESPACE,
        targets=TARGETS.values(),
        sections=sections(),
        secrets=secrets_of(),
        meanings=SECRETS,
        tables=_Tables(schema).tables,
        anchor=_anchor,
        cell=_cell,
        codes=_codes,
        excerpt=_excerpt,
        listed=listed,
        merged=_merged,
        names=_names,
        only=_only,
    )


def example(target: str) -> str:
    """Return the example of a target, with its text unchanged."""
    return (EXAMPLES / f"{target}.yaml").read_text()


def _only(path: str, table: _Table) -> str:
    """Return the sentence about a table's targets. Empty if all targets of its section have it."""
    is_same = set(table.targets) == {spec.name for spec in _owners(path)}
    return "" if is_same else f" Targets: {listed(table.targets)}."


def _merged(variants: Mapping[_Row, list[str]], column: str, table: _Table) -> str:
    """Return a cell. If targets differ, it names the targets of each variant."""
    by_text: dict[str, list[str]] = {}
    for row, names in variants.items():
        by_text.setdefault(getattr(row, column), []).extend(names)
    having = [name for names in by_text.values() for name in names]
    if len(by_text) > 1:
        return "; ".join(f"{listed(names)}: {text}" for text, names in by_text.items() if text)
    only = f" Targets: {listed(having)}." if column == "meaning" and len(having) < len(table.targets) else ""
    return f"{next(iter(by_text))}{only}"


def _excerpt(section: str) -> str:
    """Return a section of its first target's example and the comment above it, unchanged."""
    text = example(sections()[section][0].name)
    parts = re.split(rf"^(?=(?:  #.*\n)*  {NAMESPACE}:)", text, flags=re.MULTILINE)
    found = next(part for part in parts if re.search(rf"^  {NAMESPACE}:{section}:", part, re.MULTILINE))
    return found.strip("\n")


def _owners(path: str) -> list[TargetSpec[Any]]:
    return sections()[re.split(r"[.\[]", path)[0]]


def _mapping(schema: Mapping[str, Any]) -> str | None:
    """Return the definition of the mapping in a value, also in a list or a union. None for another value."""
    for option in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
        name: str = option.get("$ref", "").rpartition("/")[2]
        if name.endswith("Settings"):
            return name
    return None


def _below(path: str, key: str, schema: Mapping[str, Any]) -> str:
    return f"{path}.{key}" + ("[]" if schema.get("type") == "array" else "")


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub generates for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _code(value: object) -> str:
    """Return a value as YAML, as code."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return f"`{text.splitlines()[0]}`"


def _codes(values: Iterable[str]) -> str:
    return ", ".join(map(_code, values))


def _names(specs: list[TargetSpec[Any]]) -> str:
    return listed(spec.name for spec in specs)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
