"""One running call of the engine: its status messages and its cancellation."""

import threading
from collections.abc import Sequence

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from emulator.plugin.errors import CancelledError

_SECONDS = 10.0


class Host:
    """The engine's receiver of messages; connects at the first one. Messages that cannot be delivered are dropped."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: engine_pb2_grpc.EngineStub | None = None
        self._pending: set[grpc.Future] = set()

    def show(self, urn: str, status: str) -> None:
        """Show a status of a resource, instead of the previous one."""
        if not self._address:
            return
        with self._lock:
            if self._stub is None:
                self._channel = grpc.insecure_channel(self._address)
                self._stub = engine_pb2_grpc.EngineStub(self._channel)
            stub = self._stub
        request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=status, urn=urn, ephemeral=True)
        pending = stub.Log.future(request, timeout=_SECONDS)
        # gRPC cancels calls without a reference, above all the first one, during the connection setup.
        self._pending.add(pending)
        pending.add_done_callback(self._pending.discard)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel = self._stub = None


class Operation:
    """A call on a resource. Another thread can cancel it; its waits then end with CancelledError.

    urn: of the resource.
    preview: whether it must not change resources.
    ignore: the property paths of the resource option ignoreChanges.
    """

    def __init__(self, urn: str, host: Host, *, preview: bool = False, ignore: Sequence[str] = ()) -> None:
        self.urn = urn
        self.preview = preview
        self.ignore = ignore
        self._host = host
        self._cancelled = threading.Event()
        self._status = ""

    @property
    def token(self) -> str:
        """The resource's type: the last one of `urn:pulumi:<stack>::<project>::<parents$type>::<name>`."""
        return self.urn.split("::", 3)[2].rpartition("$")[2]

    def cancel(self) -> None:
        """End all waits of the operation."""
        self._cancelled.set()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises CancelledError."""
        if self._cancelled.wait(seconds):
            raise CancelledError("the engine cancelled the operation")

    def status(self, message: str) -> None:
        """Show what the operation waits for, instead of the previous status."""
        if message != self._status:
            self._status = message
            self._host.show(self.urn, message)

    def clear_status(self) -> None:
        """Remove the status, if there is one."""
        self.status("")
