"""The SSH server of a guest: one user with keys, readable files, one forwarded port."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh

from emulator.openstack_guest.first_boot import FirstBoot

Handler = Callable[[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]], Awaitable[None]]
_READ = re.compile(r"test -e (?P<path>[\w./-]+) \|\| exit (?P<absent>\d+); cat (?P=path)")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CHUNK = 65536


class Guest:
    """A VM with its SSH server. connections: the open ones."""

    def __init__(self, first_boot: FirstBoot) -> None:
        self.first_boot = first_boot
        self.connections: set[asyncssh.SSHServerConnection] = set()

    async def listen(self, address: str, port: int) -> asyncssh.SSHAcceptor:
        """Start the SSH server and return it."""
        return await asyncssh.listen(
            address,
            port,
            server_factory=lambda: _Server(self),
            server_host_keys=[asyncssh.import_private_key(self.first_boot.user_data.host_key)],
            process_factory=lambda process: _run(self.first_boot, process),
            reuse_address=True,
        )

    def drop(self) -> None:
        """Close all connections, like a VM that reboots."""
        for connection in tuple(self.connections):
            connection.abort()


class _Server(asyncssh.SSHServer):
    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._first_boot = guest.first_boot

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._guest.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._guest.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        """Accept the keys of the only user; reject all others."""
        if username == self._first_boot.user_data.user:
            keys = "\n".join(self._first_boot.user_data.authorized_keys)
            self._connection.set_authorized_keys(asyncssh.import_authorized_keys(keys))
        return True

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        """Forward only to the API server: no other process listens on the VM's loopback."""
        if dest_host in _LOOPBACK and dest_port == self._first_boot.api_port:
            return _forward(self._first_boot.api_server)
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "Connection refused")


async def _run(first_boot: FirstBoot, process: asyncssh.SSHServerProcess[str]) -> None:
    """Run the only supported command: print a file, or exit with the given code if it does not exist."""
    found = _READ.fullmatch(process.command or "")
    if found is None:
        process.stderr.write(f"{process.command}: command not found: no system runs behind this SSH server\n")
        process.exit(127)
        return
    text = first_boot.read(found["path"])
    if text is None:
        process.exit(int(found["absent"]))
        return
    process.stdout.write(text)
    process.exit(0)


def _forward(target: tuple[str, int]) -> Handler:
    async def connected(reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        near, far = await asyncio.open_connection(*target)
        await asyncio.gather(copy(reader, far), copy(near, writer))

    return connected


async def copy(source: Any, target: Any) -> None:
    """Copy bytes until the source ends or a side breaks; then close the target."""
    try:
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
    except (OSError, asyncssh.Error):
        pass
    finally:
        target.close()
