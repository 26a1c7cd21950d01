"""How long a run of the benchmarks may take: what would not fit any more is not begun, and said to be left out."""

from __future__ import annotations

import time
from collections.abc import Callable

from emulator.progress import duration


class Budget:
    """Some time for all benchmarks together, in seconds. left_out: the rows for which there was not enough."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._seconds = seconds
        self.left_out: list[str] = []

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def allows(self, row: str, seconds: float) -> bool:
        """Tell whether a row that is expected to take so long still fits; one that does not is left out."""
        fits = self.spent + seconds <= self._seconds
        if not fits:
            self.left_out.append(row)
        return fits

    def report(self) -> str:
        """Say how long it took and what was left out."""
        missing = f"; left out, which `--minutes` makes room for: {', '.join(self.left_out)}" if self.left_out else ""
        return f"in all {duration(self.spent)}{missing}"
