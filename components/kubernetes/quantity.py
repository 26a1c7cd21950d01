"""Kubernetes resource quantities, read and printed as the API server and its controllers do.

A controller that rewrites an object prints each quantity in canonical form. If a program declares the same amount in
another form (`8000m` for `8`), each preview shows a difference. All quantities therefore use this module. Source of the
grammar and of the canonical form: k8s.io/apimachinery, `pkg/api/resource/quantity.go`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {0: ""} | {power: suffix for suffix, power in _BINARY.items()}
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_SPELLING: Final = r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
"""The grammar in the subset of JSON Schema: without named groups and without negative amounts."""
_NANO: Final = 10**9
_MAXIMUM: Final = 2**63 - 1
_LARGEST_EXPONENT: Final = 18
_MOST_DIGITS: Final = 100
_FLOAT_PLACES: Final = 3


class QuantityError(ValueError):
    """The value is not a quantity that Kubernetes stores exactly. The message has the reason."""


class Format(Enum):
    """How a quantity is printed. It follows the form of the input."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A non-negative amount of a resource.

    nano: the amount in billionths of the resource's unit (bytes of memory, cores of CPU, pieces of all else).
    format: the family of suffixes for printing. Equality compares the amount and the format.
    """

    nano: int
    format: Format = Format.DECIMAL

    @classmethod
    def parse(cls, value: object) -> Quantity:
        """Return the quantity of a string in Kubernetes' grammar, an integer, or a number with up to 3 decimals.

        Raises QuantityError for all other values: booleans, negative or non-finite numbers, amounts above 2^63-1 (which
        Kubernetes caps) and amounts finer than a billionth (which Kubernetes rounds up).
        """
        if isinstance(value, Quantity):
            return value
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise QuantityError(f"a quantity is a string or a number, not {_kind(value)}")
        if isinstance(value, float):
            value = _plain(value)
        return cls._of_text(str(value))

    @classmethod
    def _of_text(cls, text: str) -> Quantity:
        match = _GRAMMAR.fullmatch(text)
        if match is None or not (match["whole"] or match["fraction"]):
            raise QuantityError("this is not a Kubernetes quantity")
        whole, fraction, suffix = match["whole"] or "0", match["fraction"] or "", match["suffix"] or ""
        if len(whole) + len(fraction) > _MOST_DIGITS:
            raise QuantityError(f"these are more digits than any amount has ({_MOST_DIGITS})")
        digits, exponent, base = int(whole + fraction), 0, 1
        if match["exponent"] is not None and len(match["exponent"]) > _MOST_DIGITS:
            raise QuantityError("this is more or finer than Kubernetes can hold")
        if match["exponent"] is not None:
            form, exponent = Format.EXPONENT, int(match["exponent"])
        elif suffix in _BINARY:
            form, base = Format.BINARY, 1024 ** _BINARY[suffix]
        else:
            form, exponent = Format.DECIMAL, _DECIMAL[suffix]
        if match["sign"] == "-" and digits:
            raise QuantityError("a quantity of a resource is never negative")
        if digits == 0:
            return cls(0, form)
        scale = exponent - len(fraction)
        if scale + len(str(digits)) > _LARGEST_EXPONENT + 2:
            raise QuantityError("this is more than Kubernetes can hold (2^63-1)")
        if scale < -_LARGEST_EXPONENT * 2:
            raise QuantityError("this is finer than Kubernetes can hold (a billionth)")
        scaled, remainder = digits * base * _NANO * 10 ** max(scale, 0), 0
        if scale < 0:
            scaled, remainder = divmod(scaled, 10**-scale)
        if remainder:
            raise QuantityError("this is finer than Kubernetes can hold (a billionth)")
        if scaled > _MAXIMUM * _NANO:
            raise QuantityError("this is more than Kubernetes can hold (2^63-1)")
        return cls(scaled, form)

    @property
    def is_whole(self) -> bool:
        """True if the amount is a whole number of units."""
        return self.nano % _NANO == 0

    def __str__(self) -> str:
        """Return the canonical form: no fraction, no lost precision, the largest possible suffix."""
        if self.nano == 0:
            return "0"
        if self.format is Format.BINARY and self.is_whole and self.nano >= 1024 * _NANO:
            amount, power = self.nano // _NANO, 0
            while amount % 1024 == 0:
                amount, power = amount // 1024, power + 1
            return f"{amount}{_BINARY_SUFFIX[power]}"
        amount, exponent = self.nano, -9
        while amount % 1000 == 0 and exponent < _LARGEST_EXPONENT:
            amount, exponent = amount // 1000, exponent + 3
        if self.format is Format.EXPONENT:
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIX[exponent]}"

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __add__(self, other: Quantity) -> Quantity:
        """Return the sum in the format of the first summand that is not zero."""
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        """Return the difference, or zero if it is negative."""
        return Quantity(max(0, self.nano - other.nano), self.format)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(self.nano * count, self.format)

    def __floordiv__(self, other: Quantity) -> int:
        """Return how many times `other` fits. `other` must not be zero."""
        return self.nano // other.nano

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Let pydantic models contain quantities. Errors have the type `quantity`."""

        def validate(value: object) -> Quantity:
            try:
                return cls.parse(value)
            except QuantityError as error:
                raise PydanticCustomError("quantity", "{reason}", {"reason": str(error)}) from error

        return core_schema.no_info_plain_validator_function(validate)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the grammar as far as JSON Schema can express it, including amounts that are too large or too fine."""
        return {"type": ["string", "number"], "minimum": 0, "pattern": f"^(?:{_SPELLING})$"}


ZERO: Final = Quantity(0)


def canonical(value: object) -> str:
    """Return the canonical form of a quantity. Raises QuantityError as `Quantity.parse` does."""
    return str(Quantity.parse(value))


def _plain(number: float) -> str:
    if not math.isfinite(number):
        raise QuantityError("a quantity is a finite number")
    decimal = Decimal(repr(number)).normalize()
    exponent = decimal.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -_FLOAT_PLACES:
        raise QuantityError("a number with more than 3 decimals is not exact: write it as a string, as in 100u")
    return format(decimal, "f")


def _kind(value: object) -> str:
    names = {bool: "true or false", list: "a list", dict: "a mapping", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
