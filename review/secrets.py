"""What becomes of a stack's secrets between two revisions of its file, told without reading one.

A value that is encrypted again has another ciphertext, so that nobody without the key can tell a new value from an old
one. What stands in the files is compared, never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from runner.stack_file import ConfigPath, StackFile, spelled

_BY_PASSPHRASE: Final = (None, "passphrase", "default")
"""`secretsprovider` of a stack whose key follows from a passphrase and a salt, or is kept by Pulumi Cloud."""


class Fate(StrEnum):
    """What becomes of a secret, in words for the reader."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed or encrypted anew"
    REVEALED = "was a secret and is plain text now, for everybody who can read this repository"
    HIDDEN = "was plain text and is a secret now; it has been readable, so that its value has to be a new one"
    STRANDED = "left as it was, though the stack's secrets are encrypted another way now: it can no longer be read"


Fates = Mapping[str, Fate]
"""By the path of a setting, as the engine writes it; only of secrets to which something happens."""


def compare(before: str | None, after: str | None) -> Fates:
    """Return what becomes of the secrets in the text of a stack's file; None where a revision has no such file.

    A text that is no YAML has no secrets here: its preview fails and says so.
    """
    return dict(_fates(_file(before), _file(after)))


def _file(text: str | None) -> StackFile:
    try:
        return StackFile(text or "")
    except ValueError:
        return StackFile("")


def _fates(before: StackFile, after: StackFile) -> Iterator[tuple[str, Fate]]:
    old, new = before.secrets, after.secrets
    for path in sorted({*old, *new}, key=spelled):
        if path not in new:
            yield spelled(path), Fate.REVEALED if _is_plain(after, path) else Fate.REMOVED
        elif path not in old:
            yield spelled(path), Fate.HIDDEN if _is_plain(before, path) else Fate.ADDED
        elif old[path] != new[path]:
            yield spelled(path), Fate.CHANGED
        elif _key(before) != _key(after):
            yield spelled(path), Fate.STRANDED


def _key(file: StackFile) -> tuple[bool, Any]:
    """Return what tells one key of encryption from another: the wrapped key of a cloud, or a passphrase's salt."""
    values = file.values
    by_passphrase = values.get("secretsprovider") in _BY_PASSPHRASE
    return by_passphrase, values.get("encryptionsalt" if by_passphrase else "encryptedkey")


def _is_plain(file: StackFile, path: ConfigPath) -> bool:
    """Tell whether text or a number stands at a path of the settings."""
    value: Any = file.config
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(value, str | int | float)
