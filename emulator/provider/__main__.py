"""`python -m emulator.provider --port PORT --api-server URL`: serve until a signal ends the process."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import warnings

from urllib3.exceptions import InsecureRequestWarning

from emulator.provider.server import start

_GRACE_SECONDS = 5.0


def main() -> int:
    """Serve in the foreground. Returns the exit code: 1 when the port cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m emulator.provider", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1; 0 takes a free one and prints it")
    parser.add_argument("--api-server", required=True, help="the one API server that provider resources may reach")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # A kubeconfig may say insecure-skip-tls-verify; kubectl does not repeat that at every request either.
    warnings.simplefilter("ignore", InsecureRequestWarning)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        server, port = start(arguments.port, arguments.api_server)
    except OSError as error:
        print(f"{error}. Choose another port, or stop what listens there.", file=sys.stderr)
        return 1
    if arguments.port == 0:
        print(port, flush=True)
    ended.wait()
    server.stop(_GRACE_SECONDS).wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
