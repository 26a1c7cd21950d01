"""Made-up values for secrets that another backend has encrypted and that cannot be read here."""

import re
import secrets
from typing import Final

from runner.stack_file import ConfigPath, spelled

MARK: Final = "made-up-for-a-secret"
"""Part of every such value, which shows that it is not the secret itself."""

_SIGNED: Final = re.compile("sas", re.IGNORECASE)
"""Keys of shared access signatures. A program may check their form."""
_ADDRESS: Final = re.compile(r"url\b", re.IGNORECASE)
"""Keys of addresses. A program may check their form."""


def placeholder(path: ConfigPath) -> str:
    """Return a new value for a secret at this path. It has the form for its key and the length of a password."""
    value = f"{MARK}-{secrets.token_urlsafe(24)}"
    if _SIGNED.search(spelled(path)):
        return f"sv=2024-11-04&sr=c&sp=rl&se=2999-12-31T23:59:59Z&sig={value}"
    return f"https://nowhere.invalid/{value}" if _ADDRESS.search(spelled(path)) else value
