"""Messages to the engine that attached."""

from __future__ import annotations

import contextlib
import threading

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

_SECONDS = 10.0


class Host:
    """The engine's end for messages; connects with the first one. A message that cannot be delivered is dropped."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: engine_pb2_grpc.EngineStub | None = None
        self._pending: set[grpc.Future] = set()

    def log(self, severity: str, urn: str, message: str, *, ephemeral: bool) -> None:
        """Show a message at a resource. severity: INFO or WARNING."""
        if not self._address:
            return
        with self._lock:
            if self._stub is None:
                self._channel = grpc.insecure_channel(self._address)
                self._stub = engine_pb2_grpc.EngineStub(self._channel)
            stub = self._stub
        request = engine_pb2.LogRequest(
            severity=engine_pb2.LogSeverity.Value(severity), message=message, urn=urn, ephemeral=ephemeral
        )
        if ephemeral:
            pending = stub.Log.future(request, timeout=_SECONDS)
            # A call that nobody holds is cancelled, above all the first one, while the connection is being made.
            self._pending.add(pending)
            pending.add_done_callback(self._pending.discard)
            return
        with contextlib.suppress(grpc.RpcError):
            stub.Log(request, timeout=_SECONDS)

    def close(self) -> None:
        """Drop the connection."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel = self._stub = None
