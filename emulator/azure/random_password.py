"""The only emulated resource of pulumi-random: `random:index/randomPassword:RandomPassword`.

A password is generated once and stored in the stack's state. Like in the official provider, each change of an input
generates a new one. The emulated inputs are `length` and `special`.
"""

import secrets
import string

from emulator.azure.store import Properties
from emulator.plugin.errors import ProviderError

TOKEN = "random:index/randomPassword:RandomPassword"
_SPECIAL = "!@#$%&*()-_=+[]{}<>:?"


def create(inputs: Properties) -> Properties:
    """Return the outputs of a new password. Raises ProviderError for an input that is not emulated."""
    unknown = sorted(inputs.keys() - {"length", "special"})
    if unknown or inputs["length"] < 1:
        raise ProviderError(f"{unknown[0]} is not emulated" if unknown else "length is less than 1")
    special = inputs.get("special", True)
    alphabet = string.ascii_letters + string.digits + (_SPECIAL if special else "")
    return {**inputs, "special": special, "result": "".join(secrets.choice(alphabet) for _ in range(inputs["length"]))}
