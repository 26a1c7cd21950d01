"""What all sections of a stack's settings have in common."""

from __future__ import annotations

from typing import Annotated, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from components.kubernetes.quantity import Quantity


class Section(BaseModel):
    """A section: each field is a key in camelCase, types are strict, keys that mean nothing are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)


def choice(what: str, known: tuple[str, ...]) -> BeforeValidator:
    """Return a validator that takes one of the known strings; its error names them."""

    def check(value: object) -> object:
        if value in known:
            return value
        raise PydanticCustomError("choice", "{what}", {"what": what, "known": known})

    return BeforeValidator(check)


def refuse(*, wrong: str, allowed: str, fix: str, secret: bool = False) -> NoReturn:
    """Refuse the value that a validator was given; raises what becomes one problem with these texts.

    secret: the value itself must not be shown.
    """
    raise PydanticCustomError("refused", "{wrong}", {"wrong": wrong, "allowed": allowed, "fix": fix, "secret": secret})


def _whole(value: Quantity) -> Quantity:
    if not value.is_whole:
        raise PydanticCustomError("quantity", "{reason}", {"reason": "this resource comes in whole pieces only"})
    return value


Pieces = Annotated[Quantity, AfterValidator(_whole)]
"""A quantity of something that cannot be divided."""
