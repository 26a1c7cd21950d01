"""A process that copies bytes between two connected sockets (`emulator/tools/relay`)."""

import contextlib
import socket
import subprocess
from pathlib import Path

PROGRAM = "relay"
"""Its name among the built tools."""

_END_SECONDS = 3.0


class RelayError(Exception):
    """The relay's process cannot be started, has ended, or refuses sockets."""


class Relay:
    """Joins pairs of sockets, from construction to `close`. Thread-safe.

    program: the built tool. Raises RelayError if it cannot be started.
    """

    def __init__(self, program: Path) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = subprocess.Popen([program], stdin=theirs.fileno())
            except OSError as error:  # not built yet if the checkout was updated under a running cluster
                self._control.close()
                raise RelayError(f"{program} does not start ({error.strerror}). Build it with `make up`") from error

    @property
    def ended(self) -> bool:
        """Whether the process has ended. Then pods and API server cannot reach each other."""
        return self._process.poll() is not None

    def join(self, left: socket.socket, right: socket.socket) -> None:
        """Copy bytes in both directions until both ends close. Takes both sockets over.

        Raises RelayError.
        """
        with left, right:
            try:
                socket.send_fds(self._control, [b"join"], [left.fileno(), right.fileno()])
            except OSError as error:
                raise RelayError(f"connections are no longer relayed: {error}") from error

    def close(self) -> None:
        """End the process and all connections."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()
