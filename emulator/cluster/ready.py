"""Readiness of a process of the cluster: it accepts connections on a Unix socket."""

import socket
import threading
from pathlib import Path


def announce(path: Path) -> None:
    """Accept and close connections from now on. Unlike a file, the socket cannot outlive the process."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(16)

    def accept() -> None:
        while True:
            listener.accept()[0].close()

    threading.Thread(target=accept, name="ready", daemon=True).start()
