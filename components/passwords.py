"""Passwords that nobody has to think up."""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_random as random

GRAFANA: Final = "grafana"
"""Name of Grafana's password among those that are made."""
MLOPS: Final = "mlops"
"""Name of what the passwords of the OSS MLOps platform follow from."""


def password(
    name: str, given: pulumi.Input[str] | None = None, opts: pulumi.ResourceOptions | None = None
) -> pulumi.Output[str]:
    """Return the password that the stack's secrets give, else one that is made once and kept as a secret of the stack.

    A made one has 32 letters and digits. Ask for it with `pulumi stack output --show-secrets` where it is an output.
    """
    if given is not None:
        return pulumi.Output.secret(given)
    return pulumi.Output.secret(random.RandomPassword(name, length=32, special=False, opts=opts).result)
