"""What the official provider says of each resource and function: the facts of `schema.yaml`, typed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.plugin.wire import UNKNOWN

DEFAULT_MINUTES: Final = 20
"""How long an operation may take where upstream says nothing (terraform-plugin-sdk, helper/schema)."""

DEFAULTS: Final = "__defaults"
"""The input that lists which others the program did not give (pulumi-terraform-bridge, reservedkeys)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property; `schema.yaml` says what each word means.

    kind: string, integer, number, boolean, map, list or set. items: the kind of what is in a list or set of values;
    of: the properties of what is in a list or set of objects.
    """

    kind: str
    words: frozenset[str]
    items: str | None = None
    of: Mapping[str, Property] = field(default_factory=dict)
    default: Any = None
    variable: str | None = None
    not_with: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    between: tuple[int, int] | None = None
    kept: str | None = None

    @property
    def is_input(self) -> bool:
        """Whether a program may give it."""
        return "optional" in self.words or "required" in self.words

    @property
    def required(self) -> bool:
        """Whether a program has to give it."""
        return "required" in self.words

    @property
    def computed(self) -> bool:
        """Whether the service decides where the program does not."""
        return "computed" in self.words

    @property
    def replaces(self) -> bool:
        """Whether a change replaces the resource."""
        return "replaces" in self.words

    @property
    def secret(self) -> bool:
        """Whether the value has to be hidden."""
        return "secret" in self.words

    @property
    def single(self) -> bool:
        """Whether it is a list upstream, and one value in Pulumi."""
        return "single" in self.words

    def in_state(self, value: Any) -> Any:
        """Return what the state has in place of an input's value."""
        if self.kept is None or not isinstance(value, str):
            return value
        return value.lower() if self.kept == "lowercase" else hashlib.sha1(value.encode()).hexdigest()  # noqa: S324


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type. minutes: how long create, update and delete may take."""

    token: str
    upstream: str
    properties: Mapping[str, Property]
    minutes: Mapping[str, int]

    @property
    def inputs(self) -> Mapping[str, Property]:
        """The properties that a program may give."""
        return {name: each for name, each in self.properties.items() if each.is_input}

    def seconds(self, operation: str) -> float:
        """Return how long an operation (create, update, delete) may take."""
        return 60.0 * self.minutes.get(operation, DEFAULT_MINUTES)


@dataclass(frozen=True, slots=True)
class Function:
    """A function. Its results are its properties, those that are given included, and an `id`."""

    token: str
    upstream: str
    properties: Mapping[str, Property]


@functools.cache
def resources() -> Mapping[str, Resource]:
    """Return the resource types by token."""
    return {
        token: Resource(token, facts["upstream"], _properties(facts["properties"]), facts.get("minutes", {}))
        for token, facts in _facts()["resources"].items()
    }


@functools.cache
def functions() -> Mapping[str, Function]:
    """Return the functions by token."""
    return {
        token: Function(token, facts["upstream"], _properties(facts["properties"]))
        for token, facts in _facts()["functions"].items()
    }


def is_empty(value: Any) -> bool:
    """Tell whether upstream takes a value for none: its zero values are one with null in a state."""
    return value is not UNKNOWN and not value


@functools.cache
def _facts() -> Any:
    return yaml.safe_load((Path(__file__).parent / "schema.yaml").read_text())


def _properties(facts: Mapping[str, Any]) -> Mapping[str, Property]:
    return {name: _property({"is": each} if isinstance(each, str) else each) for name, each in facts.items()}


def _property(facts: Mapping[str, Any]) -> Property:
    kind, *words = facts["is"].split()
    between = facts.get("between")
    return Property(
        kind=kind,
        words=frozenset(words),
        items=facts.get("items"),
        of=_properties(facts.get("of", {})),
        default=facts.get("default"),
        variable=facts.get("variable"),
        not_with=tuple(facts.get("notWith", ())),
        only_with=tuple(facts.get("onlyWith", ())),
        values=tuple(facts.get("values", ())),
        between=(between[0], between[1]) if between else None,
        kept=facts.get("kept"),
    )
