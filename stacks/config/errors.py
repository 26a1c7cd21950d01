"""Errors in a stack's settings, with key, value, problem and fix."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

NAMESPACE: Final = "mlbatch"
"""The project's name, which is the prefix of its keys in a stack's configuration."""

Path: TypeAlias = tuple[str | int, ...]
"""Location of a value: the section's name, then keys and list positions."""

MISSING: Final = object()
"""Value of a missing key."""
UNKNOWN: Final = object()
"""Value of a key that was not looked up in the settings."""

_LONGEST_VALUE: Final = 80
_LONGEST_PATH: Final = 255
_MOST_NODES: Final = 5
_SECRETS: Final = (
    re.compile(r'(\bsig=)[^&\s"\\]+', re.IGNORECASE),  # a shared access signature
    re.compile(r'(\b(?:account|shared ?access|access)?key=)[^;\s"\\]+', re.IGNORECASE),  # a connection string
    re.compile(r"()\beyJ[\w-]+\.[\w-]+\.[\w-]*"),  # a JSON web token
    re.compile(
        r"()\b(?:gh[oprsu]|github_pat|glpat|hf|nvapi)[-_][\w-]{16,}"
    ),  # tokens of GitHub, GitLab, Hugging Face, NVIDIA
)
"""Secrets that are removed from messages. The first group stays."""


def _of_addresses(end: str) -> tuple[re.Pattern[str], ...]:
    """Return the secret parts of an address. The first group stays. end: the characters that end an address."""
    return (
        # a user's password, which may contain any character, also @; not an image's digest
        re.compile(rf"(?<![^\s/:@\"'])((?:[\w+.-]+://)?[^\s/:@\"']*:)(?!//)[^{end}]+(?=@(?!sha256:))"),
        re.compile(rf"(://)[^{end}/:@]+(?=@)"),  # a token in the place of a user
        re.compile(rf"([?&][^\s=&#\"']+=)[^{end}&#]+"),  # parameters
        re.compile(rf"(://[^{end}#]+#)[^{end}]+"),
    )


_IN_VALUES: Final = (*_of_addresses(r"\0"), *_SECRETS)
_IN_WORDS: Final = (*_of_addresses(r"\s"), *_SECRETS)
_NOT_SHOWN: Final = "[secret]"
_SEVERAL_LINES: Final = "[several lines]"


@dataclass(frozen=True)
class ConfigError:
    """An invalid value.

    path: of the value. message: the problem. hint: the fix. Each is a sentence without a full stop.
    expected: the allowed values, unless the problem and the fix are enough.
    value: as written. Default: what the settings have at the path. MISSING: do not show it.
    is_default: the value is the default.
    """

    path: Path
    message: str
    hint: str
    _: KW_ONLY
    expected: str = ""
    value: object = UNKNOWN
    is_default: bool = False

    def __str__(self) -> str:
        value = "" if self.value in (MISSING, UNKNOWN) else f" = {shown(self.value)}"
        value += " (the default)" if value and self.is_default else ""
        allowed = f"    allowed: {self.expected}\n" if self.expected else ""
        text = f"    wrong:   {self.message}\n{allowed}    fix:     {self.hint}"
        if isinstance(self.value, str) and self.value.strip():
            text = text.replace(self.value, _masked(self.value))
        return f"{key(self.path)}{value}\n{_without(_IN_WORDS, text)}"


class SettingsError(Exception):
    """A stack's settings are invalid. The message lists all problems."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        self.problems = tuple(problems)
        count = counted(len(self.problems), "problem")
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
    """Return a value as JSON, shortened and without secrets.

    Of a mapping, only the keys are shown: its values may be passwords.
    """
    return cut(json.dumps(_showable(value), ensure_ascii=False, default=str), _LONGEST_VALUE)


def _showable(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_showable(item) for item in value]
    return _masked(value) if isinstance(value, str) else form(value) if isinstance(value, Mapping) else value


def cut(text: str, longest: int = _LONGEST_PATH) -> str:
    """Return a text, shortened to a maximum length."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def _masked(value: str) -> str:
    """Return a value without the passwords, keys and tokens that their form identifies.

    No setting has several lines. Such a value is a pasted file, such as a key or a kubeconfig.
    """
    if "PRIVATE KEY" in value:
        return "[a private key]"
    return _SEVERAL_LINES if "\n" in value.strip() else _without(_IN_VALUES, value)


def another_name(refused: str, better: str) -> str:
    """Return the fix of a name: a similar valid name, unless the name may be a password."""
    is_shown = ":" not in refused and _masked(refused) == refused
    return f"for example {better!r}" if better and is_shown else "write a name with these characters"


def _without(secrets: Iterable[re.Pattern[str]], text: str) -> str:
    for secret in secrets:
        text = secret.sub(rf"\1{_NOT_SHOWN}", text)
    return text


def form(value: object) -> object:
    """Return the structure of an unexpected value, without its texts and numbers, which may be passwords."""
    if isinstance(value, Mapping):
        return {name: form(item) for name, item in value.items()}
    if isinstance(value, list):
        return [form(item) for item in value]
    return value if value is None or isinstance(value, bool) else "..."


def listed(values: Iterable[Any], separator: str = ", ") -> str:
    """Return values as a list in one line, or `none` for an empty list."""
    return separator.join(str(value) for value in values) or "none"


def few(nodes: Sequence[str]) -> str:
    """Return names of nodes as a list in one line, or the first of many."""
    more = len(nodes) - _MOST_NODES
    return listed(nodes[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, what: str) -> str:
    """Return a number of things, such as `1 node` or `2 nodes`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def nearest(word: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known word that is most similar to a misspelled one, or None if no word is similar.

    likeness: how similar it must be, from 0 to 1.
    """
    known = list(known)
    # A user may write only the last part of a resource such as nvidia.com/gpu. If several match, take the first.
    by_lower = {candidate.lower().rpartition("/")[2]: candidate for candidate in reversed(known)}
    by_lower |= {candidate.lower(): candidate for candidate in known}
    matches = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[matches[0]] if matches else None


def instead(word: object, known: Iterable[str], otherwise: str, likeness: float = 0.6) -> str:
    """Return the fix of a misspelled word: the most similar known word, or another fix if no word is similar."""
    meant = nearest(word, known, likeness)
    return f"did you mean {meant}?" if meant else otherwise


def unknown_key(path: Path, known: Iterable[str], secrets: Iterable[str] = ()) -> ConfigError:
    """Return the error of an unknown key. Its value is not shown, because it may be a password.

    secrets: the keys of secrets, which are not in sections.
    """
    known, secrets = list(known), list(secrets)
    meant = nearest(path[-1], [*known, *secrets])
    if meant in secrets:
        return ConfigError(
            path,
            "unknown key; a secret has a separate key, and is encrypted",
            f"remove this key; if you mean {meant}, run `pulumi config set --secret {key((meant,))}`, which asks for "
            "the value. Others could read a value that was written here, so enter a new one",
        )
    return ConfigError(
        path,
        f"unknown key {path[-1]!r}",
        f"did you mean {meant!r}?" if meant else "remove the key",
        expected=listed(known),
    )
