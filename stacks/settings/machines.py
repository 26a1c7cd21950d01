"""The machine types that a stack may name, and what is known of them."""

from typing import Final

from components.azure import sizes  # noqa: TID251 - a simulated or an existing cluster may have any cloud's machines
from components.health.thresholds import Scope, Threshold
from components.nodes import machines

MACHINES: Final = {**machines.MACHINES, **sizes.MACHINES}
"""By name, the default first."""


def threshold(instance_type: str, scope: Scope) -> Threshold | None:
    """Return the bandwidth of NCCL's all-reduce on healthy machines of a type, or None if it is unknown."""
    machine = MACHINES.get(instance_type)
    return machine.thresholds.get(scope) if machine is not None else None
