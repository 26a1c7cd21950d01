"""Rules for metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from components.kubernetes.quantity import Quantity
from stacks.problems import Problem, key
from stacks.reading import Parts

_LEAST: Final = Quantity.parse("10Gi")


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with the monitoring."""
    monitoring = parts.monitoring
    if monitoring is None or not monitoring.enabled:
        return
    if monitoring.storage.nano < _LEAST.nano:
        yield Problem(
            path=("monitoring", "storage"),
            value=str(monitoring.storage),
            wrong="a volume this small is full within hours, and Prometheus then drops what it has just recorded",
            allowed=f"at least {_LEAST}",
            fix=f"set {key(('monitoring', 'storage'))} to 100Gi, or remove the key",
        )
