"""Report what happens to a stack's secrets between two revisions of its file, without reading a secret.

Encrypting a value again changes its ciphertext, so a new value looks like an old one without the key. The files' texts
are compared and never shown.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from runner.stack_file import ConfigPath, StackFile, spelled

_BY_PASSPHRASE: Final = (None, "passphrase", "default")
"""`secretsprovider` of a stack whose key comes from a passphrase and a salt, or is stored in Pulumi Cloud."""


class Fate(StrEnum):
    """What happens to a secret, in words for the reader."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed or encrypted again"
    REVEALED = "was a secret and is now plain text for everyone who can read this repository"
    HIDDEN = "was plain text and is a secret now; replace its value, because it was readable"
    STRANDED = "unchanged, and no longer readable, because the stack's secrets have another encryption now"


Fates = Mapping[str, Fate]
"""By the path of a setting, in the engine's syntax. Only secrets that change."""


def compare(before: str | None, after: str | None) -> Fates:
    """Return what happens to the secrets in a stack's file. None means that a revision does not have the file.

    A text that is not YAML has no secrets here. Its preview fails with a message.
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
    """Return what identifies the encryption key: a cloud's wrapped key, or a passphrase's salt."""
    values = file.values
    by_passphrase = values.get("secretsprovider") in _BY_PASSPHRASE
    return by_passphrase, values.get("encryptionsalt" if by_passphrase else "encryptedkey")


def _is_plain(file: StackFile, path: ConfigPath) -> bool:
    """Return whether text or a number is at a path of the settings."""
    value: Any = file.config
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(value, str | int | float)
