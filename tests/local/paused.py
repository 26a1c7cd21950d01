"""Pauses a process of the local cluster."""

import contextlib
import os
import signal
from collections.abc import Iterator

from emulator import cluster as local_cluster
from emulator.paths import Paths


@contextlib.contextmanager
def paused(paths: Paths, name: str) -> Iterator[None]:
    """Pause a process, such as kube-apiserver or kwok, for the length of the context."""
    (process,) = [each.pid for each in local_cluster.status(paths).processes if each.name == name]
    assert process is not None, f"{name} does not run"
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)
