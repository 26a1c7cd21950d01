"""Bytes between two connected sockets, copied by a process of its own (`emulator/tools/relay`)."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from pathlib import Path

PROGRAM = "relay"
"""Its name among the built tools."""

_END_SECONDS = 3.0


class RelayError(Exception):
    """The relay's process cannot be started, has ended, or takes nothing any more."""


class Relay:
    """Joins pairs of sockets, from construction to `close`; safe to use from threads.

    program: the built tool. Raises RelayError where it cannot be started.
    """

    def __init__(self, program: Path) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = subprocess.Popen([program], stdin=theirs.fileno())
            except OSError as error:  # a checkout that was brought up to date under a running cluster has none yet
                self._control.close()
                raise RelayError(f"{program} does not start ({error.strerror}): `make up` builds it") from error

    @property
    def ended(self) -> bool:
        """Whether the process has: then no pod reaches the API server, which reaches none."""
        return self._process.poll() is not None

    def join(self, left: socket.socket, right: socket.socket) -> None:
        """Have bytes copied in both directions until both have ended. Both sockets are the relay's from here on.

        Raises RelayError.
        """
        with left, right:
            try:
                socket.send_fds(self._control, [b"join"], [left.fileno(), right.fileno()])
            except OSError as error:
                raise RelayError(f"connections are not relayed any more: {error}") from error

    def close(self) -> None:
        """End the process, and with it all connections."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()
