"""Provider resources, identified by the engine's connections.

In every run an engine opens a connection for each provider resource, and calls do not name their provider resource
(Pulumi SDK, `go/common/resource/plugin/provider_plugin.go`). So the peer's address is the key. A connection begins with
Handshake, which resets the entry of a reused address.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from emulator.plugin.errors import CancelledError, ProviderError
from emulator.plugin.operation import Host, Operation
from emulator.plugin.provider import Provider

_KEPT = 256


class Connection:
    """One provider resource in one engine run."""

    def __init__(self, address: str) -> None:
        self.host = Host(address)
        self._provider: Provider | None = None
        self._lock = threading.Lock()
        self._running: set[Operation] = set()
        self._cancelled = False

    @property
    def provider(self) -> Provider:
        """The provider of the resources. Raises ProviderError before Configure."""
        if self._provider is None:
            raise ProviderError(
                "this connection has no configuration: the provider process was restarted during the run, or the "
                "connection was idle for too long. Run the command again"
            )
        return self._provider

    @provider.setter
    def provider(self, provider: Provider) -> None:
        self._provider = provider

    @contextlib.contextmanager
    def operation(self, urn: str, **options: Any) -> Iterator[Operation]:
        """Run an operation that `cancel` can end. options: those of Operation."""
        operation = Operation(urn, self.host, **options)
        with self._lock:
            if self._cancelled:
                raise CancelledError("the engine cancelled the operation")
            self._running.add(operation)
        try:
            yield operation
        finally:
            with self._lock:
                self._running.discard(operation)

    @property
    def idle(self) -> bool:
        """Whether no operation runs."""
        return not self._running

    def cancel(self) -> None:
        """Cancel running operations and reject new ones."""
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for operation in running:
            operation.cancel()


class Connections:
    """The connections of all engine runs. Idle ones are removed, the longest unused first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_peer: OrderedDict[str, Connection] = OrderedDict()

    def begin(self, peer: str, address: str) -> Connection:
        """Create a new entry for a connection of the engine that listens at the address."""
        connection = Connection(address)
        with self._lock:
            gone = [self._by_peer.pop(peer)] if peer in self._by_peer else []
            self._by_peer[peer] = connection
            idle = [key for key, each in self._by_peer.items() if each.idle and each is not connection]
            gone += [self._by_peer.pop(key) for key in idle[: max(0, len(self._by_peer) - _KEPT)]]
        for each in gone:
            each.host.close()
        return connection

    def of(self, peer: str) -> Connection:
        """Return a connection. One without Handshake begins with its first call."""
        with self._lock:
            connection = self._by_peer.get(peer)
            if connection is not None:
                self._by_peer.move_to_end(peer)
                return connection
        return self.begin(peer, "")
