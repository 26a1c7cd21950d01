"""The JSON Schema of stack files. Editors use it to complete, explain and check settings.

It uses draft 7, the newest that the YAML language server supports. It covers rules for single values. The program
checks rules between values.
"""

from collections.abc import Mapping
from enum import Enum
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import PydanticUndefined, core_schema

from components.kubernetes.quantity import Quantity
from components.tables import Table
from reference import descriptions
from stacks.config import secrets
from stacks.config.errors import NAMESPACE, listed
from stacks.settings.model import SettingsModel
from stacks.targets.registry import SECRET_KEYS, TARGETS
from stacks.targets.spec import TargetSpec

TARGET: Final = f"{NAMESPACE}:target"
_DEFINITION: Final = "#/definitions/{model}"
_SECRET: Final = "secret"


class _Descriptions(Table):
    secrets: Mapping[str, str]
    own: Mapping[str, str]


_DESCRIPTIONS: Final = _Descriptions.load(__name__)
SECRETS: Final = _DESCRIPTIONS.secrets
"""The description of each secret, by its key."""


def schema() -> dict[str, Any]:
    """Return the schema of a file Pulumi.<stack>.yaml of this project."""
    specs = list(TARGETS.values())
    refs, generated = models_json_schema(
        [(spec.settings, "validation") for spec in specs],
        ref_template=_DEFINITION,
        schema_generator=_Generator,
    )
    definitions = generated["$defs"]
    trees = {spec.name: definitions.pop(refs[spec.settings, "validation"]["$ref"].rpartition("/")[2]) for spec in specs}
    definitions[_SECRET] = {
        "type": "object",
        "properties": {"secure": {"type": "string"}},
        "required": ["secure"],
        "additionalProperties": False,
    }
    own: dict[str, Any] = {name: {"type": "string", "description": text} for name, text in _DESCRIPTIONS.own.items()}
    own["environment"] = {"type": ["array", "object"], "description": "Environments of Pulumi ESC."}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by `make settings` from the models of the settings.",
        "title": f"A stack of {NAMESPACE}",
        "type": "object",
        "properties": {**own, "config": _config(specs, trees)},
        "required": ["config"],
        "additionalProperties": False,
        "definitions": dict(sorted(definitions.items())),
    }


def sections() -> Mapping[str, list[TargetSpec[Any]]]:
    """Return the targets of each section, by its key. The order keeps each target's own order."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for spec in TARGETS.values():
        for before, after in pairwise(spec.sections):
            order.add(after, before)
    return {name: [spec for spec in TARGETS.values() if name in spec.sections] for name in order.static_order()}


def secrets_of() -> Mapping[str, list[TargetSpec[Any]]]:
    """Return the targets of each secret, by its key."""
    return {
        name: [spec for spec in TARGETS.values() if name in (*secrets.COMMON, *spec.secrets)] for name in SECRET_KEYS
    }


def _config(specs: list[TargetSpec[Any]], trees: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        TARGET: {
            "enum": [spec.name for spec in specs],
            "description": trees[specs[0].name]["properties"]["target"]["description"],
        }
    }
    conditions: dict[str, dict[str, Any]] = {spec.name: {} for spec in specs}
    for name, owners in sections().items():
        first, *others = (trees[spec.name]["properties"][name] for spec in owners)
        text = f"{first['description']} Targets: {listed(spec.name for spec in owners)}."
        # If targets differ, the condition of each target below has its own schema.
        same = all(other == first for other in others)
        properties[f"{NAMESPACE}:{name}"] = {**(first if same else {}), "description": text}
        for spec in TARGETS.values():
            if spec not in owners:
                conditions[spec.name][f"{NAMESPACE}:{name}"] = False
            elif not same:
                conditions[spec.name][f"{NAMESPACE}:{name}"] = trees[spec.name]["properties"][name]
    for name, owners in secrets_of().items():
        properties[f"{NAMESPACE}:{name}"] = {
            "$ref": _DEFINITION.format(model=_SECRET),
            "description": f"{SECRETS[name]} Targets: {listed(spec.name for spec in owners)}.",
        }
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {f"^(?!{NAMESPACE}:)[^:]+:": {}},
        "required": [TARGET],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {TARGET: {"const": spec.name}}, "required": [TARGET]},
                "then": {"properties": conditions[spec.name], "required": _required(spec, trees[spec.name])},
            }
            for spec in specs
        ],
    }


def _required(spec: TargetSpec[Any], tree: Mapping[str, Any]) -> list[str]:
    return [f"{NAMESPACE}:{name}" for name in tree["required"] if name in spec.sections]


class _Generator(GenerateJsonSchema):
    """Describes models as users write them: with field descriptions, and defaults in YAML form."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model = schema["cls"]
        if not issubclass(model, SettingsModel):
            return made
        made.pop("title", None)
        made["description"] = descriptions.of_model(model)
        words = descriptions.of_fields(model)
        for name, info in model.model_fields.items():
            key = made["properties"].get(info.alias)
            if key is None:
                continue  # a key that exists only for its error
            key.pop("title", None)
            key |= {"description": words[name]} if name in words else {}
            key |= _default(info)
        return made

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return {"type": "string", "enum": [member.value for member in schema["members"]]}


def _default(info: FieldInfo) -> dict[str, Any]:
    """Return a field's default, if it has one. For a section, only values that differ from its own defaults."""
    value = info.get_default(call_default_factory=True)
    if value in (PydanticUndefined, None) or (isinstance(value, SettingsModel) and not _written(value)):
        return {}
    return {"default": _written(value)}


def _written(value: object) -> Any:
    """Return a value as in a stack's file. For a section, only values that differ from its own defaults."""
    if isinstance(value, SettingsModel):
        fields = {info.alias or name: (getattr(value, name), info) for name, info in type(value).model_fields.items()}
        return {
            key: _written(item)
            for key, (item, info) in fields.items()
            if info.is_required() or item != info.get_default(call_default_factory=True)
        }
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    if isinstance(value, Quantity):
        return str(value)
    return value.value if isinstance(value, Enum) else value
