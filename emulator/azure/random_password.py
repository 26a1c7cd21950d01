"""The one resource of pulumi-random that is emulated: `random:index/randomPassword:RandomPassword`.

A password is made once and then lives in the stack's state; every change of an input makes a new one, as with the
official provider. Of its inputs `length` and `special` are emulated.
"""

from __future__ import annotations

import secrets
import string

from emulator.azure.store import Properties
from emulator.plugin.errors import ProviderError

TOKEN = "random:index/randomPassword:RandomPassword"
_SPECIAL = "!@#$%&*()-_=+[]{}<>:?"


def create(inputs: Properties) -> Properties:
    """Return the outputs of a new password. Raises ProviderError for what is not emulated."""
    unknown = sorted(inputs.keys() - {"length", "special"})
    if unknown or inputs["length"] < 1:
        raise ProviderError(f"{unknown[0]} is not emulated" if unknown else "length is less than 1")
    special = inputs.get("special", True)
    alphabet = string.ascii_letters + string.digits + (_SPECIAL if special else "")
    return {**inputs, "special": special, "result": "".join(secrets.choice(alphabet) for _ in range(inputs["length"]))}
