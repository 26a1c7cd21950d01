"""Connect to a port of a floating address of the local OpenStack: connect.py SOCKET ADDRESS PORT.

The ProxyCommand of the local environment's `ssh` runs this file as a script, so it has no imports from the project.
"""

import os
import socket
import sys
import threading

_CHUNK = 65536


def main(path: str, address: str, port: str) -> int:
    """Copy bytes between standard input and output and the port until one end closes; return the exit code."""
    with socket.socket(socket.AF_UNIX) as gateway:
        try:
            gateway.connect(path)
            gateway.sendall(f"{address} {port}\n".encode())
            refusal = _line(gateway)
        except OSError as error:
            refusal = f"the local OpenStack's network does not answer: {error}"
        if refusal:
            print(f"connect to address {address} port {port}: {refusal}", file=sys.stderr)
            return 1
        threading.Thread(target=_send, args=(gateway,), daemon=True).start()
        while chunk := gateway.recv(_CHUNK):
            os.write(1, chunk)
    return 0


def _line(gateway: socket.socket) -> str:
    """Return the gateway's error, empty if the port is reached. Does not read the bytes after it."""
    found = b""
    while not found.endswith(b"\n"):
        byte = gateway.recv(1)
        if not byte:
            return "Connection reset by peer"
        found += byte
    return found.decode().strip()


def _send(gateway: socket.socket) -> None:
    try:
        while chunk := os.read(0, _CHUNK):
            gateway.sendall(chunk)
        gateway.shutdown(socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
