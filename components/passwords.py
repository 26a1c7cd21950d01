"""Passwords that the stack generates."""

from typing import Final

import pulumi
import pulumi_random as random

GRAFANA: Final = "grafana"
"""Name of Grafana's password among the generated ones."""
MLOPS: Final = "mlops"
"""Name of the main password of the OSS MLOps platform."""


def password(
    name: str, given: pulumi.Input[str] | None = None, opts: pulumi.ResourceOptions | None = None
) -> pulumi.Output[str]:
    """Return the password from the stack's secrets, or one that is generated once and stored as a secret of the stack.

    A generated one has 32 letters and digits. If it is an output, `pulumi stack output --show-secrets` shows it.
    """
    if given is not None:
        return pulumi.Output.secret(given)
    return pulumi.Output.secret(random.RandomPassword(name, length=32, special=False, opts=opts).result)
