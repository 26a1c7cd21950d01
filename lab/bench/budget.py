"""The time limit of a benchmark run. Rows that would exceed it are skipped and reported."""

import time
from collections.abc import Callable

from emulator.progress import duration


class Budget:
    """A time limit for all benchmarks together, in seconds. left_out: the skipped rows."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._seconds = seconds
        self.left_out: list[str] = []

    @property
    def spent(self) -> float:
        return self._clock() - self._began

    def allows(self, row: str, seconds: float) -> bool:
        """Tell whether a row with this expected duration still fits. Otherwise skip it."""
        fits = self.spent + seconds <= self._seconds
        if not fits:
            self.left_out.append(row)
        return fits

    def report(self) -> str:
        """Return the total duration and the skipped rows."""
        missing = f"; left out, which `--minutes` makes room for: {', '.join(self.left_out)}" if self.left_out else ""
        return f"in all {duration(self.spent)}{missing}"
