"""`python -m emulator.provider --port PORT --api-server URL`: serve until a signal ends the process."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from urllib3.exceptions import InsecureRequestWarning

from emulator.plugin.server import serve
from emulator.provider.config import Reachable
from emulator.provider.server import Kubernetes


def main() -> int:
    """Serve in the foreground. Returns the exit code: 1 when the port cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m emulator.provider", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1; 0 takes a free one and prints it")
    parser.add_argument("--api-server", required=True, help="the one API server that provider resources may reach")
    parser.add_argument("--authority", type=Path, help="certificate of its CA: a tunnel to it may be used, too")
    arguments = parser.parse_args()
    # A kubeconfig may say insecure-skip-tls-verify; kubectl does not repeat that at every request either.
    warnings.simplefilter("ignore", InsecureRequestWarning)
    authority = arguments.authority.read_text() if arguments.authority else None
    return serve(Kubernetes(Reachable(arguments.api_server, authority)), arguments.port)


if __name__ == "__main__":
    sys.exit(main())
