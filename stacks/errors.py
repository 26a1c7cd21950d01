"""What is wrong with a stack's settings, in words for the person who wrote them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

NAMESPACE: Final = "mlbatch"
"""The project's name, which is the prefix of its keys in a stack's configuration."""

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the section's name on."""

MISSING: Final = object()
"""Stands for the value of a key that is not there."""

_LONGEST_VALUE = 80
_SIGNATURE = re.compile(r'(\bsig=)[^&\s"\\]+', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ConfigError:
    """One mistake.

    path: of the value. value: as the user wrote it, or MISSING. message: what is the matter, expected: what may stand
    there, hint: what to do; each a sentence without its full stop.
    """

    path: Path
    value: object = MISSING
    message: str
    expected: str
    hint: str

    def __str__(self) -> str:
        value = "" if self.value is MISSING else f" = {shown(self.value)}"
        return (
            f"{key(self.path)}{value}\n"
            f"    wrong:   {self.message}\n    allowed: {self.expected}\n    fix:     {self.hint}"
        )


class SettingsError(Exception):
    """A stack's settings cannot be used; the message lists every problem that was found."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        listed = "\n\n".join(f"{number}. {problem}" for number, problem in enumerate(self.problems, 1))
        super().__init__(f"The stack's configuration has {count}. Nothing was created or changed.\n\n{listed}\n")


def key(path: Path) -> str:
    """Return a path as `pulumi config set --path` takes it, such as `mlbatch:teams[1].quota["nvidia.com/gpu"]`."""
    text = f"{NAMESPACE}:{path[0]}" if path else NAMESPACE
    for part in path[1:]:
        is_plain = isinstance(part, str) and part.replace("_", "").replace("-", "").isalnum()
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if is_plain else f"[{json.dumps(part)}]"
    return text


def shown(value: object) -> str:
    """Return a value as a configuration has it, cut where it is long, without what must not be shown to others."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if "PRIVATE KEY" in text:
        return '"[a private key]"'
    text = _SIGNATURE.sub(r"\1[secret]", text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def listed(values: Iterable[Any], separator: str = ", ") -> str:
    """Return values as an enumeration, or `none` when there are none."""
    return separator.join(str(value) for value in values) or "none"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word that a misspelt one most likely means, if one is near."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def unknown_key(path: Path, value: object, known: Iterable[str]) -> ConfigError:
    """Return the problem of a key that means nothing."""
    known = list(known)
    meant = nearest(path[-1], known)
    return ConfigError(
        path=path,
        value=value,
        message=f"there is no key {path[-1]!r} here",
        expected=listed(known),
        hint=f"did you mean {meant!r}?" if meant else "remove the key",
    )
