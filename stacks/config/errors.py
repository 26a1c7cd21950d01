"""What is wrong with a stack's settings, in words for the person who wrote them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

NAMESPACE: Final = "mlbatch"
"""The project's name, which is the prefix of its keys in a stack's configuration."""

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the section's name on."""

MISSING: Final = object()
"""Stands for the value of a key that is not there."""

_LONGEST_VALUE: Final = 80
_LONGEST_PATH: Final = 255
_SECRETS: Final = (
    re.compile(r'(\bsig=)[^&\s"\\]+', re.IGNORECASE),  # a shared access signature
    re.compile(r'(\b(?:account|shared ?access|access)?key=)[^;\s"\\]+', re.IGNORECASE),  # a connection string
    re.compile(r"()\beyJ[\w-]+\.[\w-]+\.[\w-]*"),  # a JSON web token
    re.compile(
        r"()\b(?:gh[oprsu]|github_pat|glpat|hf|nvapi)[-_][\w-]{16,}"
    ),  # tokens of GitHub, GitLab, Hugging Face, NVIDIA
)
"""What nobody may read in a message, behind what may stay."""


def _of_addresses(end: str) -> tuple[re.Pattern[str], ...]:
    """Return what nobody may read of an address, behind what may stay. end: the characters that end an address."""
    return (
        # a user's password, which may hold any character, an @ among them; no image's digest
        re.compile(rf"(?<![^\s/:@\"'])((?:[\w+.-]+://)?[^\s/:@\"']*:)(?!//)[^{end}]+(?=@(?!sha256:))"),
        re.compile(rf"(://)[^{end}/:@]+(?=@)"),  # a token in the place of a user
        re.compile(rf"([?&][^\s=&#\"']+=)[^{end}&#]+"),  # parameters
        re.compile(rf"(://[^{end}#]+#)[^{end}]+"),
    )


_IN_VALUES: Final = (*_of_addresses(r"\0"), *_SECRETS)
_IN_WORDS: Final = (*_of_addresses(r"\s"), *_SECRETS)
_NOT_SHOWN: Final = "[secret]"
_SEVERAL_LINES: Final = "[several lines]"


@dataclass(frozen=True, kw_only=True)
class ConfigError:
    """One mistake.

    path: of the value. value: as the user wrote it, or MISSING. message: what is the matter, expected: what may stand
    there, hint: what to do; each a sentence without its full stop. is_default: nobody wrote the value.
    """

    path: Path
    value: object = MISSING
    message: str
    expected: str
    hint: str
    is_default: bool = False

    def __str__(self) -> str:
        value = "" if self.value is MISSING else f" = {shown(self.value)}"
        value += " (the default)" if value and self.is_default else ""
        text = f"    wrong:   {self.message}\n    allowed: {self.expected}\n    fix:     {self.hint}"
        if isinstance(self.value, str) and self.value.strip():
            text = text.replace(self.value, _masked(self.value))
        return f"{key(self.path)}{value}\n{_without(_IN_WORDS, text)}"


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
    """Return a value as a configuration has it, cut where it is long, without what must not be shown to others.

    Of mappings the names alone: what stands under them is the user's, a password as well as a label.
    """
    return cut(json.dumps(_showable(value), ensure_ascii=False, default=str), _LONGEST_VALUE)


def _showable(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_showable(item) for item in value]
    return _masked(value) if isinstance(value, str) else form(value) if isinstance(value, Mapping) else value


def cut(text: str, longest: int = _LONGEST_PATH) -> str:
    """Return a text, shortened where it is too long to be read."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def _masked(value: str) -> str:
    """Return a value without the passwords, keys and tokens that show as such by their form.

    No setting has several lines: who writes some has pasted a file, such as a key or a kubeconfig.
    """
    if "PRIVATE KEY" in value:
        return "[a private key]"
    return _SEVERAL_LINES if "\n" in value.strip() else _without(_IN_VALUES, value)


def another_name(refused: str, better: str) -> str:
    """Return the fix of a name: one that is made of it, unless it may be a password that should not be repeated."""
    is_shown = ":" not in refused and _masked(refused) == refused
    return f"for example {better!r}" if better and is_shown else "write a name of such characters"


def _without(secrets: Iterable[re.Pattern[str]], text: str) -> str:
    for secret in secrets:
        text = secret.sub(rf"\1{_NOT_SHOWN}", text)
    return text


def form(value: object) -> object:
    """Return a value of a form that nobody expects, without the texts and numbers in it, which may be passwords."""
    if isinstance(value, Mapping):
        return {name: form(item) for name, item in value.items()}
    if isinstance(value, list):
        return [form(item) for item in value]
    return value if value is None or isinstance(value, bool) else "..."


def listed(values: Iterable[Any], separator: str = ", ") -> str:
    """Return values as an enumeration, or `none` when there are none."""
    return separator.join(str(value) for value in values) or "none"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word that a misspelt one most likely means, if one is near."""
    known = list(known)
    # Of a resource such as nvidia.com/gpu people write the last part alone; of two that end alike the first is meant.
    by_lower = {candidate.lower().rpartition("/")[2]: candidate for candidate in reversed(known)}
    by_lower |= {candidate.lower(): candidate for candidate in known}
    matches = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def unknown_key(path: Path, known: Iterable[str]) -> ConfigError:
    """Return the problem of a key that means nothing. What stands under it is not shown: it may be a password."""
    known = list(known)
    meant = nearest(path[-1], known)
    return ConfigError(
        path=path,
        message=f"there is no key {path[-1]!r} here",
        expected=listed(known),
        hint=f"did you mean {meant!r}?" if meant else "remove the key",
    )
