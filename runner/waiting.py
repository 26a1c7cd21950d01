"""Wait for a state of a cluster."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def awaited(probe: Callable[[], T], seconds: float, every: float) -> T:
    """Return the first true value of a probe, otherwise its last value after this many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := probe()) and time.monotonic() < deadline:
        time.sleep(every)
    return found
