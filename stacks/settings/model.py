"""What all sections of a stack's settings have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from components.kubernetes.quantity import Quantity
from stacks.errors import ConfigError, Path


class SettingsModel(BaseModel):
    """A section: each field is a key in camelCase, types are strict, keys that mean nothing are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Yield what is wrong between the values of this section, which stands at a path; nothing by default.

        Called for each section that could be read. What spans sections is checked in `stacks.validation`, or by the
        target that owns the sections.
        """
        return iter(())


def choice(what: str, known: tuple[str, ...]) -> BeforeValidator:
    """Return a validator that takes one of the known strings; its error names them."""

    def check(value: object) -> object:
        if value in known:
            return value
        raise PydanticCustomError("choice", "{what}", {"what": what, "known": known})

    return BeforeValidator(check)


def reject(*, message: str, expected: str, hint: str, secret: bool = False) -> NoReturn:
    """Reject the value that a validator was given; raises what becomes one ConfigError with these texts.

    secret: the value itself must not be shown.
    """
    context = {"message": message, "expected": expected, "hint": hint, "secret": secret}
    raise PydanticCustomError("rejected", "{message}", context)


def _whole(value: Quantity) -> Quantity:
    if not value.is_whole:
        raise PydanticCustomError("quantity", "{reason}", {"reason": "this resource comes in whole pieces only"})
    return value


WholeQuantity = Annotated[Quantity, AfterValidator(_whole)]
"""A quantity of something that cannot be divided."""
