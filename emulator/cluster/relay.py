"""Copying bytes between two connected sockets."""

from __future__ import annotations

import contextlib
import socket
import threading

_CHUNK = 1 << 16


def relay(left: socket.socket, right: socket.socket) -> None:
    """Copy in both directions until both have ended, then close both sockets. Returns when that is done."""
    other = threading.Thread(target=_copy, args=(right, left), daemon=True)
    other.start()
    _copy(left, right)
    other.join()
    left.close()
    right.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, and pass the end on; after an error neither direction can go on."""
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
