"""Connects floating addresses to guests: python -m emulator.openstack_guest.gateway --root R --state S.

A client sends an address and a port on one line. The response is an empty line, then the guest's bytes, or a line with
an error. The current state in Neutron and Nova decides. A guest runs from its first connection until its VM is deleted.
"""

import argparse
import asyncio
import base64
import contextlib
import os
import sys
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import asyncssh
from openstack.exceptions import SDKException

from emulator.cluster.layout import Layout
from emulator.openstack import seed
from emulator.openstack.deployment import Deployment
from emulator.openstack_guest.first_boot import FirstBoot
from emulator.openstack_guest.programs import SOCKET
from emulator.openstack_guest.server import Guest, copy
from emulator.openstack_guest.user_data import UserData, UserDataError
from emulator.paths import Paths
from runner.files import UMASK

SSH = 22
_LOOK_SECONDS = 5.0


class UnreachableError(Exception):
    """The target does not respond; the message is that of a client's system."""


@dataclass(frozen=True)
class Running:
    """A guest, and its listener on 127.0.0.1."""

    guest: Guest
    acceptor: asyncssh.SSHAcceptor


class Gateway:
    """The guests of one OpenStack. kubeconfig: of the cluster that replaces the cluster of each VM."""

    def __init__(self, paths: Paths) -> None:
        self._folder = Deployment(paths).folder
        self._kubeconfig = paths.kubeconfig
        self._guests: dict[str, Running] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        try:
            address, port = (await reader.readline()).decode().split()
            near, far = await self._connect(address, int(port))
        except (UnreachableError, OSError, SDKException, ValueError) as error:
            with contextlib.suppress(OSError):  # the client did not wait
                writer.write(f"{' '.join(str(error).split())}\n".encode())
                await writer.drain()
            writer.close()
            return
        writer.write(b"\n")
        await asyncio.gather(copy(reader, far), copy(near, writer))

    async def look(self) -> None:
        """Remove guests whose VMs no longer run, and break connections from an old address, in an endless loop."""
        caller = self._folder.caller()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            before, caller = caller, self._folder.caller()
            for identifier in list(self._guests):
                if caller != before:
                    self._guests[identifier].guest.drop()
                if not await asyncio.to_thread(self._is_active, identifier):
                    gone = self._guests.pop(identifier)
                    gone.acceptor.close()
                    gone.guest.drop()

    async def _connect(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        server = await asyncio.to_thread(self._behind, address, port)
        if port != SSH:
            raise UnreachableError("Connection refused")
        if server.id not in self._guests:
            try:
                user_data = UserData.parse(base64.b64decode(server.user_data or "").decode())
            except UserDataError as error:
                raise UnreachableError(f"no user can log in to server {server.name}: {error}") from None
            guest = Guest(FirstBoot(user_data, self._kubeconfig.read_text()))
            self._guests[server.id] = Running(guest, await guest.listen("127.0.0.1", 0))
        return await asyncio.open_connection("127.0.0.1", self._guests[server.id].acceptor.get_port())

    def _behind(self, address: str, port: int) -> Any:
        """Return the server that receives packets to this address and port. Raises UnreachableError."""
        cloud = seed.administrator(self._folder)
        found = list(cloud.network.ips(floating_ip_address=address))
        if not found or found[0].port_id is None:
            raise UnreachableError("No route to host")
        caller = self._folder.caller()
        inside = cloud.network.get_port(found[0].port_id)
        rules = [
            rule
            for group in inside.security_group_ids
            for rule in cloud.network.security_group_rules(security_group_id=group, direction="ingress")
        ]
        if inside.is_port_security_enabled and not any(lets_in(rule, port, caller) for rule in rules):
            raise UnreachableError("Connection timed out")
        server = cloud.compute.get_server(inside.device_id) if inside.device_id else None
        if server is None or server.status != "ACTIVE":
            raise UnreachableError("No route to host")
        return server

    def _is_active(self, identifier: str) -> bool:
        try:
            server = seed.administrator(self._folder).compute.find_server(identifier)
        except SDKException:
            return True  # Nova does not respond; guests run on without it
        return server is not None and server.status == "ACTIVE"


def lets_in(rule: Any, port: int, caller: str | None) -> bool:
    """Tell whether a rule admits TCP packets to this port. caller: source address, None for an admitted one."""
    if rule.ether_type != "IPv4" or rule.protocol not in (None, "tcp") or rule.remote_group_id is not None:
        return False
    source = rule.remote_ip_prefix
    if caller is not None and source is not None and ip_address(caller) not in ip_network(source):
        return False
    return rule.port_range_min is None or rule.port_range_min <= port <= rule.port_range_max


async def _forever(paths: Paths) -> None:
    gateway = Gateway(paths)
    socket = Layout(paths).socket(SOCKET)
    socket.unlink(missing_ok=True)
    async with await asyncio.start_unix_server(gateway.serve, socket):
        await gateway.look()


def main() -> int:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(prog="python -m emulator.openstack_guest.gateway", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    options = parser.parse_args()
    os.umask(UMASK)
    asyncio.run(_forever(Paths.of(root=options.root, state=options.state)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
