"""YAML as the engine reads a stack's file: by go-yaml v3 (`resolve.go`, `decode.go`), between YAML 1.1 and 1.2.

PyYAML reads YAML 1.1: `no` is false, `22:00` is a number, and the last of two equal keys wins.
"""

import contextlib
import math
import re
from datetime import UTC, datetime
from typing import Any, Final

import yaml
from yaml.composer import ComposerError

_INTEGER: Final = re.compile(r"([-+]?)(0[bB]|0[oO]?|0[xX]|)([0-9a-fA-F]+)")
_BASES: Final = {"0b": 2, "0o": 8, "0": 8, "0x": 16, "": 10}
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WHOLE: Final = 1e21
"""From this number on, the engine's JSON has an exponent."""
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME: Final = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]+))?"
_MOMENTS: Final = (
    re.compile(rf"{_DATE.pattern} {_TIME}()"),
    re.compile(rf"{_DATE.pattern}[Tt]{_TIME}(Z|[-+][0-9]{{2}}:[0-9]{{2}})"),
)


_HANDED_OVER: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?) (?:\+0000 UTC|([-+][0-9]{4}) \3)"
)


def date_hint(value: object) -> str:
    """Return the fix of a text that YAML reads as a date, or an empty text for any other value."""
    date = _HANDED_OVER.fullmatch(value) if isinstance(value, str) else None
    if date is None:
        return ""
    written = f'"{date[1]}"' if date[2] == "00:00:00" else "it was written"
    return f"YAML reads it as a date: write it in quotes, as {written}"


def place(error: Exception) -> str:
    """Return where a text is not valid YAML. The error itself quotes the line, which may contain a secret."""
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else "this"


def load(text: str) -> Any:
    """Return the value of a text. Raises yaml.YAMLError, also for a duplicate key in a mapping."""
    return _Loader(text).get_single_data()


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012, declared so by PyYAML; none of YAML 1.1's

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for name, _ in node.value:
            if isinstance(name, yaml.ScalarNode) and name.value in seen:
                raise ComposerError(None, None, f"duplicate key {name.value!r}", name.start_mark)
            seen.add(str(name.value))
        return node


def _beginning_like_a_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
    text = str(node.value)
    read = _moment(text) or _number(text.replace("_", ""))
    return text if read is None else read


def _number(text: str) -> int | float | None:
    if found := _INTEGER.fullmatch(text):
        sign, prefix, digits = found.groups()
        with contextlib.suppress(ValueError):
            return int(sign + digits, _BASES[prefix.lower()])
    number = float(text) if _DECIMAL.fullmatch(text) else math.inf
    if math.isinf(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _moment(text: str) -> str | None:
    """Return a date as the engine makes a text of it, such as 2026-01-05 00:00:00 +0000 UTC."""
    found = next((match for moment in _MOMENTS if (match := moment.fullmatch(text))), None)
    date = found or _DATE.fullmatch(text)
    if date is None:
        return None
    year, month, day, hour, minute, second = (int(each) for each in (*date.groups(), 0, 0, 0)[:6])
    fraction, zone = (found[7] or "", found[8]) if found else ("", "")
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    fraction = f".{fraction}".rstrip("0.")
    offset = "" if zone in ("", "Z", "+00:00", "-00:00") else zone.replace(":", "")
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} {f'{offset} {offset}' if offset else '+0000 UTC'}"


_LIKE_A_NUMBER: Final = "!like-a-number"
_Loader.add_implicit_resolver(_LIKE_A_NUMBER, re.compile("[-+]?[0-9.].*$"), list("+-.0123456789"))
_Loader.add_constructor(_LIKE_A_NUMBER, _beginning_like_a_number)
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("<<$"), ["<"])
