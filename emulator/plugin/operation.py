"""One running call of the engine: how it reports progress and how it is cancelled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from emulator.plugin.errors import CancelledError


class Reporter(Protocol):
    """Where messages for the user go."""

    def log(self, severity: str, urn: str, message: str, *, ephemeral: bool) -> None:
        """Show a message at the resource; an ephemeral one is replaced by the next. severity: INFO or WARNING."""


class Operation:
    """A call on a resource. It can be cancelled from another thread, at which point waits end with CancelledError.

    urn: of the resource. timeout: seconds of the resource option customTimeouts, 0 without one. preview: nothing may
    be changed. ignore: the property paths of the resource option ignoreChanges.
    """

    def __init__(
        self, urn: str, reporter: Reporter, *, timeout: float = 0.0, preview: bool = False, ignore: Sequence[str] = ()
    ) -> None:
        self.urn = urn
        self.reporter = reporter
        self.timeout = timeout
        self.preview = preview
        self.ignore = ignore
        self._cancelled = threading.Event()
        self._closers: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._status = ""

    @property
    def token(self) -> str:
        """The resource's type: the last one of `urn:pulumi:<stack>::<project>::<parents$type>::<name>`."""
        return self.urn.split("::", 3)[2].rpartition("$")[2]

    def cancel(self) -> None:
        """End every wait of the operation."""
        with self._lock:
            self._cancelled.set()
            closers = list(self._closers)
        for close in closers:
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                close()

    def check(self) -> None:
        """Raise CancelledError when the operation was cancelled."""
        if self._cancelled.is_set():
            raise CancelledError("the engine cancelled the operation")

    def sleep(self, seconds: float) -> None:
        """Wait. Raises CancelledError."""
        self._cancelled.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def closing(self, close: Callable[[], object]) -> Iterator[None]:
        """Have `close` called on cancellation while the block runs; it has to end a blocking read."""
        with self._lock:
            self._closers.append(close)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._closers.remove(close)

    def status(self, message: str) -> None:
        """Show what the operation waits for, in place of the previous status."""
        if message != self._status:
            self._status = message
            self.reporter.log("INFO", self.urn, message, ephemeral=True)

    def clear_status(self) -> None:
        """Take the status off the screen, if there is one."""
        if self._status:
            self.status("")

    def inform(self, message: str) -> None:
        """Show a message that stays."""
        self.reporter.log("INFO", self.urn, message, ephemeral=False)

    def warn(self, message: str) -> None:
        """Show a warning that stays."""
        self.reporter.log("WARNING", self.urn, message, ephemeral=False)


class Deadline:
    """A bounded wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the wait has to end; 0 or less when it is over."""
        return self._end - time.monotonic()
