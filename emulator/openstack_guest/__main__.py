"""Emulate a VM of the local OpenStack: python -m emulator.openstack_guest --user-data FILE --address A --port P."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from emulator.openstack_guest.first_boot import FirstBoot
from emulator.openstack_guest.server import Guest
from emulator.openstack_guest.user_data import UserData, UserDataError
from runner.files import UMASK


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the process ends; return the exit code."""
    options = _parser().parse_args(arguments)
    os.umask(UMASK)
    try:
        user_data = UserData.parse(options.user_data.read_text())
    except UserDataError as error:
        print(f"error: {options.user_data}: {error}", file=sys.stderr)
        return 1
    kubeconfig = options.kubeconfig.read_text() if options.kubeconfig else None
    first_boot = FirstBoot(user_data, kubeconfig, options.seconds, options.fails)
    asyncio.run(_forever(first_boot, options.address, options.port))
    return 0


async def _forever(first_boot: FirstBoot, address: str, port: int) -> None:
    async with await Guest(first_boot).listen(address, port) as server:
        await server.wait_closed()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator.openstack_guest", description=__doc__)
    parser.add_argument("--user-data", type=Path, required=True, help="file with the instance's user data")
    parser.add_argument("--address", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=22, help="port to listen on")
    parser.add_argument("--kubeconfig", type=Path, help="file with the kubeconfig of its cluster")
    parser.add_argument("--seconds", type=float, default=0.0, help="duration of the first boot")
    parser.add_argument("--fails", metavar="STEP", help="step where the first boot fails")
    return parser


if __name__ == "__main__":
    sys.exit(main())
