"""`python -m emulator.openstack_provider`: serve until a signal ends the process, or the engine that started it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

from emulator.openstack_provider.journal import Journal
from emulator.openstack_provider.server import OpenStack
from emulator.plugin.server import serve

_SECONDS = 1.0


def main() -> int:
    """Serve in the foreground. Returns the exit code: 1 when the port cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m emulator.openstack_provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one and prints it")
    parser.add_argument("--journal", type=Path, help="folder for what is created and no engine has recorded yet")
    parser.add_argument("--local", action="store_true", help="refuse an OpenStack that is not on this machine")
    # An engine that starts a plugin gives its own address, and flags of logging and tracing.
    arguments, _ = parser.parse_known_args()
    if arguments.port == 0:
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    return serve(OpenStack(Journal(arguments.journal), local=arguments.local), arguments.port)


def _end_with(parent: int) -> None:
    """End when the process that started this one has ended, however it did."""
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
