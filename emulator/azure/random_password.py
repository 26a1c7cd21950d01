"""The one resource of pulumi-random that is emulated: `random:index/randomPassword:RandomPassword`.

A password is made once and then lives in the stack's state; every change of an input makes a new one, as with the
official provider. `bcryptHash` is not emulated.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from typing import Any

from emulator.azure.store import Properties
from emulator.plugin.errors import ProviderError

TOKEN = "random:index/randomPassword:RandomPassword"
_SPECIAL = "!@#$%&*()-_=+[]{}<>:?"
_DEFAULTS: Mapping[str, Any] = {
    "lower": True,
    "minLower": 0,
    "minNumeric": 0,
    "minSpecial": 0,
    "minUpper": 0,
    "number": True,
    "numeric": True,
    "special": True,
    "upper": True,
}


def create(inputs: Properties) -> Properties:
    """Return the outputs of a new password. Raises ProviderError when the inputs contradict each other."""
    given = {**_DEFAULTS, **inputs}
    if "number" in inputs and "numeric" not in inputs:
        given["numeric"] = given["number"]
    given["number"] = given["numeric"]
    special = inputs.get("overrideSpecial") or _SPECIAL
    groups = [
        (string.ascii_lowercase, given["lower"], given["minLower"]),
        (string.digits, given["numeric"], given["minNumeric"]),
        (special, given["special"], given["minSpecial"]),
        (string.ascii_uppercase, given["upper"], given["minUpper"]),
    ]
    length, least = int(given["length"]), sum(int(minimum) for _, _, minimum in groups)
    if length < max(least, 1):
        raise ProviderError(f"length is {length}, but the minimum of each kind of character makes {max(least, 1)}")
    alphabet = "".join(characters for characters, used, _ in groups if used)
    if not alphabet:
        raise ProviderError("no kind of character is allowed: set one of lower, upper, numeric and special to true")
    chosen = [secrets.choice(characters) for characters, _, minimum in groups for _ in range(int(minimum))]
    chosen += [secrets.choice(alphabet) for _ in range(length - len(chosen))]
    secrets.SystemRandom().shuffle(chosen)
    return {**given, "result": "".join(chosen)}
