"""The engine's provider protocol, `pulumirpc.ResourceProvider`, in front of a plugin."""

# ruff: noqa: N802 (the protocol names the methods)

from __future__ import annotations

import contextlib
import functools
import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, TypeVar

import grpc
from google.protobuf.empty_pb2 import Empty
from grpc import ServicerContext as Context
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc, status_pb2
from pulumi.runtime.proto import provider_pb2 as protocol

from emulator.plugin.connections import Connections
from emulator.plugin.diffing import Difference
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Plugin, Resources
from emulator.plugin.wire import decode, encode
from runner.properties import parse

_LOG = logging.getLogger(__name__)
_LARGEST_MESSAGE = 400 * 1024 * 1024  # the engine's limit in both directions
# A waiting operation blocks a thread, and the engine runs any number of operations at once.
_THREADS = 256
_GRACE_SECONDS = 5.0

Request = TypeVar("Request")
Answer = TypeVar("Answer")


def _answering(
    method: Callable[[Servicer, Request, Context], Answer],
) -> Callable[[Servicer, Request, Context], Answer]:
    """Turn errors into gRPC statuses.

    A status other than UNKNOWN means for the engine that the resource did not change (Pulumi SDK, `provider_plugin.go`,
    `resourceStateAndError`).
    """

    @functools.wraps(method)
    def call(self: Servicer, request: Request, context: Context) -> Any:
        try:
            return method(self, request, context)
        except PartialError as error:
            _abort_partially(context, error)
        except ProviderError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except Exception as error:
            _LOG.exception("%s failed", method.__name__)
            context.abort(
                grpc.StatusCode.UNKNOWN,
                f"the emulated provider {self.plugin.name} has a defect in {method.__name__}: {error!r}. See the trace "
                "in its log",
            )

    return call


def _abort_partially(context: Context, error: PartialError) -> None:
    """End a call with the detail that makes the engine keep a resource that is not ready."""
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    detail = protocol.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=encode(error.properties),
        inputs=encode(error.inputs),
        reasons=[str(error)],
    )
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves any number of engines and provider resources at once; see `connections`.

    The SDK's class answers all other calls with "not implemented".
    """

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self._connections = Connections()

    @_answering
    def Handshake(
        self, request: protocol.ProviderHandshakeRequest, context: Context
    ) -> protocol.ProviderHandshakeResponse:
        self._connections.begin(context.peer(), request.engine_address)
        return protocol.ProviderHandshakeResponse(accept_secrets=False, supports_autonaming_configuration=True)

    @_answering
    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> Empty:
        # Must succeed, although Handshake has already passed the engine's address.
        return Empty()

    @_answering
    def GetPluginInfo(self, request: Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self.plugin.version)

    @_answering
    def GetSchema(self, request: protocol.GetSchemaRequest, context: Context) -> protocol.GetSchemaResponse:
        schema = {"name": self.plugin.name, "version": self.plugin.version, "provider": {}, "resources": {}}
        return protocol.GetSchemaResponse(schema=json.dumps(schema))

    @_answering
    def CheckConfig(self, request: protocol.CheckRequest, context: Context) -> protocol.CheckResponse:
        failures = self.plugin.check_config(decode(request.news))
        return protocol.CheckResponse(inputs=request.news, failures=_failures(failures))

    @_answering
    def DiffConfig(self, request: protocol.DiffRequest, context: Context) -> protocol.DiffResponse:
        # An unknown difference: the engine compares itself, and replaces no resource.
        return protocol.DiffResponse()

    @_answering
    def Configure(self, request: protocol.ConfigureRequest, context: Context) -> protocol.ConfigureResponse:
        self._connections.of(context.peer()).provider = self.plugin.configure(decode(request.args))
        return protocol.ConfigureResponse(supportsPreview=True)

    @_answering
    def Check(self, request: protocol.CheckRequest, context: Context) -> protocol.CheckResponse:
        with self._running(request, context) as (resources, operation):
            inputs, failures = resources.check(decode(request.olds), decode(request.news), operation)
        return protocol.CheckResponse(inputs=encode(inputs), failures=_failures(failures))

    @_answering
    def Diff(self, request: protocol.DiffRequest, context: Context) -> protocol.DiffResponse:
        with self._running(request, context, ignore=list(request.ignoreChanges)) as (resources, operation):
            found = resources.diff(request.id, decode(request.old_inputs), decode(request.news), operation)
        return _diff_response(found)

    @_answering
    def Create(self, request: protocol.CreateRequest, context: Context) -> protocol.CreateResponse:
        with self._running(request, context, preview=request.preview) as (resources, operation):
            identifier, state = resources.create(decode(request.properties), operation)
        return protocol.CreateResponse(id=identifier, properties=encode(state))

    @_answering
    def Read(self, request: protocol.ReadRequest, context: Context) -> protocol.ReadResponse:
        with self._running(request, context) as (resources, operation):
            found = resources.read(request.id, decode(request.properties), decode(request.inputs), operation)
        if found is None:
            return protocol.ReadResponse()
        return protocol.ReadResponse(id=found.id, properties=encode(found.outputs), inputs=encode(found.inputs))

    @_answering
    def Update(self, request: protocol.UpdateRequest, context: Context) -> protocol.UpdateResponse:
        with self._running(request, context, preview=request.preview) as (resources, operation):
            state = resources.update(request.id, decode(request.olds), decode(request.news), operation)
        return protocol.UpdateResponse(properties=encode(state))

    @_answering
    def Delete(self, request: protocol.DeleteRequest, context: Context) -> Empty:
        with self._running(request, context) as (resources, operation):
            resources.delete(request.id, operation)
        return Empty()

    @_answering
    def Cancel(self, request: Empty, context: Context) -> Empty:
        self._connections.of(context.peer()).cancel()
        return Empty()

    @_answering
    def Invoke(self, request: protocol.InvokeRequest, context: Context) -> protocol.InvokeResponse:
        answer = self._connections.of(context.peer()).provider.invoke(request.tok, decode(request.args))
        response = protocol.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(answer))
        return response

    @contextlib.contextmanager
    def _running(self, request: Any, context: Context, **options: Any) -> Iterator[tuple[Resources, Operation]]:
        connection = self._connections.of(context.peer())
        with connection.operation(request.urn, **options) as operation:
            context.add_callback(operation.cancel)
            yield connection.provider.resources(operation.token), operation


def _failures(found: Sequence[Failure]) -> list[protocol.CheckFailure]:
    return [protocol.CheckFailure(property=key, reason=reason) for key, reason in found]


def _diff_response(difference: Difference) -> protocol.DiffResponse:
    some, none = protocol.DiffResponse.DIFF_SOME, protocol.DiffResponse.DIFF_NONE
    response = protocol.DiffResponse(
        changes=some if difference.changes else none,
        # The engine's summary of a step lists these properties.
        diffs=list(dict.fromkeys(str(parse(path)[0]) for path in difference.changes)),
        replaces=difference.replaces,
        deleteBeforeReplace=difference.delete_before_replace,
        hasDetailedDiff=True,
    )
    for path, change in difference.changes.items():
        kind = protocol.PropertyDiff.Kind.Value(f"{change.kind}_REPLACE" if change.replaces else change.kind)
        response.detailedDiff[path].CopyFrom(protocol.PropertyDiff(kind=kind, inputDiff=True))
    return response


def start(plugin: Plugin, port: int) -> tuple[grpc.Server, int]:
    """Serve on loopback; port 0 means a free port. Return the running server and its port.

    Raises OSError if the port is in use.
    """
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="call"),
        options=(
            ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
            ("grpc.max_send_message_length", _LARGEST_MESSAGE),
            ("grpc.so_reuseport", 0),
        ),
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(plugin), server)
    try:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
    except RuntimeError as error:
        raise OSError(f"cannot bind port {port} of 127.0.0.1: {error}") from None
    server.start()
    return server, bound


def serve(plugin: Plugin, port: int) -> int:
    """Serve until a signal ends the process; return the exit code: 1 if the port is in use."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        server, bound = start(plugin, port)
    except OSError as error:
        print(f"{error}. Choose another port, or stop the process that uses it.", file=sys.stderr)
        return 1
    if port == 0:
        print(bound, flush=True)
    ended.wait()
    server.stop(_GRACE_SECONDS).wait()
    return 0
