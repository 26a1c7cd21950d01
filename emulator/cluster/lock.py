"""The lock that a running supervisor holds."""

import fcntl
import os
from pathlib import Path


def take(path: Path) -> int | None:
    """Lock the file at `path`, which is created. Return its descriptor, or None if another process has the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
