"""What all sections of a stack's settings have in common."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NoReturn

from annotated_types import GroupedMetadata
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from components.kubernetes.quantity import Quantity
from stacks.config.errors import MISSING, ConfigError, Path


class SettingsModel(BaseModel):
    """A section of the configuration.

    Each field is a key in camelCase. Types are strict, and an unknown key is an error. docs/settings.md is generated
    from the docstrings of the class and below its fields.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Yield errors between the values of this section. The default yields none. path: of the section.

        Called for each valid section. Rules between sections are checked in `stacks.validation`, or by the
        target that owns the sections.
        """
        return iter(())

    def unused(self, path: Path, fields: Iterable[str], message: str, hint: str) -> Iterator[ConfigError]:
        """Yield errors of fields that are set and have no effect. path: of the section."""
        for name in fields:
            if name in self.model_fields_set:
                yield ConfigError((*path, to_camel(name)), message, hint, value=MISSING)


@dataclass(frozen=True, eq=False)
class Rule(GroupedMetadata):
    """A validator of texts, with as much of it as JSON Schema can say: `keywords`, which editors go by."""

    validator: AfterValidator | BeforeValidator
    keywords: Mapping[str, Any]

    def __iter__(self) -> Iterator[object]:
        yield self.validator
        yield WithJsonSchema({"type": "string", **self.keywords})


def matching(check: Callable[[str], str], pattern: str, allowed: str) -> Rule:
    """Return a validator of texts that must match a whole pattern. allowed: the pattern in words.

    patternErrorMessage is not a standard keyword, but editors with VS Code's JSON language service show it.
    """
    return Rule(AfterValidator(check), {"pattern": f"^(?:{pattern})$", "patternErrorMessage": allowed})


def form(pattern: str, allowed: str, message: str, hint: str) -> Rule:
    """Return a validator that takes the texts that a pattern matches as a whole. allowed: the pattern in words."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            reject(message, hint, expected=allowed)
        return value

    return matching(check, pattern, allowed)


def one_of(check: Callable[[str], str], known: Sequence[str]) -> Rule:
    """Return a validator that accepts only the known texts."""
    return Rule(AfterValidator(check), {"enum": list(known)})


def choice(what: str, known: tuple[str, ...]) -> Rule:
    """Return a validator that takes one of the known strings; its error names them."""

    def check(value: object) -> object:
        if value in known:
            return value
        raise PydanticCustomError("choice", "{what}", {"what": what, "known": known})

    return Rule(BeforeValidator(check), {"enum": list(known)})


def reject(message: str, hint: str, *, expected: str = "", secret: bool = False) -> NoReturn:
    """Reject the value that a validator was given; raises what becomes one ConfigError with these texts.

    secret: the value itself must not be shown.
    """
    context = {"message": message, "expected": expected, "hint": hint, "secret": secret}
    raise PydanticCustomError("rejected", "{message}", context)


def _quantity(is_valid: Callable[[Quantity], bool], reason: str, hint: str | None = None) -> AfterValidator:
    """Return a validator of quantities. reason: may contain {value}. hint: the fix, by default that of any quantity."""

    def check(value: Quantity) -> Quantity:
        if not is_valid(value):
            raise PydanticCustomError("quantity", "{reason}", {"reason": reason.format(value=value), "hint": hint})
        return value

    return AfterValidator(check)


def _some(value: Quantity) -> Quantity:
    if not value.nano:
        reject("the amount must be greater than 0", "set it to an amount above 0")
    return value


_MILLI: Final = 10**6
_LEAST_BYTES: Final = Quantity.parse("1Mi")
WholeQuantity = Annotated[
    Quantity, _quantity(lambda value: value.is_whole, "this resource must be a whole number", "write a whole number")
]
"""A quantity of something that cannot be divided."""
Cores = Annotated[Quantity, _quantity(lambda value: not value.nano % _MILLI, "CPU amounts cannot be finer than 1m")]
"""CPU cores (kubernetes.io, concepts/configuration/manage-resources-containers: no finer than 1m)."""
Bytes = Annotated[
    Quantity,
    _quantity(lambda value: value.is_whole, "bytes must be a whole number"),
    _quantity(
        lambda value: not value.nano or value >= _LEAST_BYTES,
        "this is only {value} bytes: the unit is missing or too small",
        "write it with one of the suffixes Mi, Gi or Ti, or M, G or T",
    ),
]
"""Bytes of memory or of a volume."""
SomeCores = Annotated[Cores, AfterValidator(_some)]
SomeBytes = Annotated[Bytes, AfterValidator(_some)]
