"""Provider resources, told apart by the engine's connections.

An engine opens a connection of its own for every provider resource, in every run, and no call says which resource it
is for (Pulumi SDK, `go/common/resource/plugin/provider_plugin.go`). So the peer's address is the key. A connection
begins with Handshake, which starts afresh even where an address is used again.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator

from emulator.plugin.errors import CancelledError, ProviderError
from emulator.plugin.host import Host
from emulator.plugin.operation import Operation
from emulator.plugin.orphans import Orphans
from emulator.provider.config import Settings
from emulator.provider.lifecycle import Lifecycle
from emulator.provider.objects import RELEASE, Type
from emulator.provider.release import Releases

_KEPT = 256


class Instance:
    """One provider resource in one engine run."""

    def __init__(self, orphans: Orphans, address: str) -> None:
        self.host = Host(address)
        self._orphans = orphans
        self._lifecycle: Lifecycle | None = None
        self._releases: Releases | None = None
        self._lock = threading.Lock()
        self._running: set[Operation] = set()
        self._cancelled = False

    @property
    def lifecycle(self) -> Lifecycle:
        """The configured operations. Raises ProviderError before Configure."""
        if self._lifecycle is None:
            raise ProviderError(
                "this connection has no configuration: the provider process was restarted during the run, or "
                "the connection "
                "was idle for too long; run the command again"
            )
        return self._lifecycle

    def operations(self, kind: Type) -> Lifecycle | Releases:
        """The operations on resources of a type."""
        lifecycle = self.lifecycle
        if kind.token != RELEASE:
            return lifecycle
        if self._releases is None:
            self._releases = Releases(lifecycle, self._orphans)
        return self._releases

    def attach(self, address: str) -> None:
        """Send messages to another engine address."""
        self.host.close()
        self.host = Host(address)

    def configure(self, settings: Settings) -> None:
        """Connect to the cluster."""
        self._releases = None
        self._lifecycle = Lifecycle(settings, self._orphans, Operation("", self.host))

    @contextlib.contextmanager
    def operation(self, urn: str) -> Iterator[Operation]:
        """Run an operation that `cancel` reaches."""
        operation = Operation(urn, self.host)
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
        """Whether nothing is running."""
        return not self._running

    def cancel(self) -> None:
        """End what runs and refuse what comes."""
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for operation in running:
            operation.cancel()


class Instances:
    """The provider resources of all engine runs; idle ones are forgotten, the longest unused first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orphans = Orphans()
        self._by_peer: OrderedDict[str, Instance] = OrderedDict()

    def begin(self, peer: str, address: str) -> Instance:
        """Start afresh for a new connection."""
        instance = Instance(self._orphans, address)
        with self._lock:
            replaced = self._by_peer.pop(peer, None)
            self._by_peer[peer] = instance
            dropped = [key for key, each in self._by_peer.items() if each.idle][: max(0, len(self._by_peer) - _KEPT)]
            gone = [self._by_peer.pop(key) for key in dropped]
        for each in [*gone, *([replaced] if replaced else [])]:
            each.host.close()
        return instance

    def of(self, peer: str) -> Instance:
        """The provider resource of a connection; an engine too old for Handshake gets one with its first call."""
        with self._lock:
            instance = self._by_peer.get(peer)
            if instance is not None:
                self._by_peer.move_to_end(peer)
                return instance
        return self.begin(peer, "")
