"""Made-up values for secrets that cannot be read here, because another backend has encrypted them."""

from __future__ import annotations

import re
import secrets
from typing import Final

from runner.stack_file import ConfigPath, spelled

MARK: Final = "made-up-for-a-secret"
"""Part of every such value, by which nobody takes it for the secret itself."""

_SIGNED: Final = re.compile("sas", re.IGNORECASE)
"""Keys of shared access signatures, whose form a program may look at."""
_ADDRESS: Final = re.compile(r"url\b", re.IGNORECASE)
"""Keys of addresses, likewise."""


def placeholder(path: ConfigPath) -> str:
    """Return a new value for a secret at this path: long enough for a password, of the form that its key wants."""
    value = f"{MARK}-{secrets.token_urlsafe(24)}"
    if _SIGNED.search(spelled(path)):
        return f"sv=2024-11-04&sr=c&sp=rl&se=2999-12-31T23:59:59Z&sig={value}"
    return f"https://nowhere.invalid/{value}" if _ADDRESS.search(spelled(path)) else value
