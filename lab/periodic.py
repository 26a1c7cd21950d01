"""Periodic calls during a measurement."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Call a function periodically, in a thread, for the length of the context."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(seconds):
            act()

    thread = threading.Thread(target=run, name=act.__qualname__, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
