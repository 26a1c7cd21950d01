"""Progress of long work on a terminal or in a log: the current step and the elapsed time."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

HEARTBEAT_SECONDS = 15.0


def duration(seconds: float) -> str:
    """Return seconds as text: `0.4s`, `12s`, `3m05s`."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


class Progress:
    """Prints one line when a step starts, a heartbeat while it runs, and its time when it ends."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._step = 0
        self._started = time.monotonic()

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Run one step with this title. A failure is printed and raised again."""
        self._step += 1
        label = f"[{self._step}/{self._steps}] {title}"
        began = time.monotonic()
        finished = threading.Event()
        self._print(f"{label} ...")
        heartbeat = threading.Thread(target=self._beat, args=(label, began, finished), daemon=True)
        heartbeat.start()
        try:
            yield
        except BaseException:
            self._print(f"{label}: failed after {duration(time.monotonic() - began)}")
            raise
        finally:
            finished.set()
            heartbeat.join()
        self._print(f"{label}: done in {duration(time.monotonic() - began)}")

    def further_step(self, title: str) -> contextlib.AbstractContextManager[None]:
        """Return a step in addition to those counted at the start."""
        self._steps += 1
        return self.step(title)

    def note(self, text: str) -> None:
        """Print a line of the running step."""
        self._print(f"      {text}")

    def _beat(self, label: str, began: float, finished: threading.Event) -> None:
        while not finished.wait(HEARTBEAT_SECONDS):
            now = time.monotonic()
            self._print(f"{label}: {duration(now - began)} (in all {duration(now - self._started)})")

    @staticmethod
    def _print(text: str) -> None:
        print(text, file=sys.stderr, flush=True)
