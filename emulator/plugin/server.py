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
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.empty_pb2 import Empty
from grpc import ServicerContext as Context
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc, status_pb2
from pulumi.runtime.proto import provider_pb2 as protocol

from emulator.plugin import paths
from emulator.plugin.connections import Connections
from emulator.plugin.diffing import Difference
from emulator.plugin.errors import OutcomeUnknownError, PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Naming, Plugin, Resources
from emulator.plugin.wire import Properties, encode, message_of

_LOG = logging.getLogger(__name__)
_LARGEST_MESSAGE = 400 * 1024 * 1024  # what the engine accepts and sends
# A waiting operation holds a thread, and the engine may run any number of operations at once.
_THREADS = 256
_GRACE_SECONDS = 5.0

Request = TypeVar("Request")
Answer = TypeVar("Answer")


def _answering(
    method: Callable[[Servicer, Request, Context], Answer],
) -> Callable[[Servicer, Request, Context], Answer]:
    """Turn errors into gRPC statuses.

    A status other than UNKNOWN tells the engine that nothing happened to the resource (Pulumi SDK,
    `provider_plugin.go`, `resourceStateAndError`).
    """

    @functools.wraps(method)
    def call(self: Servicer, request: Request, context: Context) -> Any:
        try:
            return method(self, request, context)
        except PartialError as error:
            _abort_partially(context, error)
        except OutcomeUnknownError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except ProviderError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except Exception as error:
            if context.code() is None:
                _LOG.exception("%s failed", method.__name__)
                context.abort(
                    grpc.StatusCode.UNKNOWN,
                    f"the emulated provider {self.plugin.name} has a defect in {method.__name__}: {error!r}; its log "
                    "has the trace",
                )
            raise

    return call


def _abort_partially(context: Context, error: PartialError) -> NoReturn:
    """End a call with the detail that makes the engine keep a resource that did not become ready."""
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    detail = protocol.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=message_of(error.properties),
        inputs=message_of(error.inputs),
        reasons=error.reasons,
    )
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError("abort returned")


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves any number of engines and provider resources at once; see `connections`.

    Protocol calls that are not here are answered as not implemented, which the engine takes for an empty answer.
    """

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self._connections = Connections()

    @_answering
    def Handshake(
        self, request: protocol.ProviderHandshakeRequest, context: Context
    ) -> protocol.ProviderHandshakeResponse:
        self._connections.begin(context.peer(), request.engine_address)
        return protocol.ProviderHandshakeResponse(
            accept_secrets=self.plugin.keeps_secrets, supports_autonaming_configuration=True
        )

    @_answering
    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> Empty:
        # Handshake has said already where the engine listens; this must succeed all the same.
        return Empty()

    @_answering
    def GetPluginInfo(self, request: Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self.plugin.version)

    @_answering
    def GetSchema(self, request: protocol.GetSchemaRequest, context: Context) -> protocol.GetSchemaResponse:
        if request.subpackage_name:
            raise self.plugin.refusal(f"the schema of the parameterized package {request.subpackage_name!r}")
        schema = {"name": self.plugin.name, "version": self.plugin.version, "provider": {}, "resources": {}}
        return protocol.GetSchemaResponse(schema=json.dumps(schema))

    @_answering
    def CheckConfig(self, request: protocol.CheckRequest, context: Context) -> protocol.CheckResponse:
        failures = self.plugin.check_config(Properties(request.news).plain)
        return protocol.CheckResponse(inputs=request.news, failures=_failures(failures))

    @_answering
    def DiffConfig(self, request: protocol.DiffRequest, context: Context) -> protocol.DiffResponse:
        found = self.plugin.diff_config(Properties(request.olds).plain, Properties(request.news).plain)
        return protocol.DiffResponse() if found is None else _diff_response(found, detailed=False)

    @_answering
    def Configure(self, request: protocol.ConfigureRequest, context: Context) -> protocol.ConfigureResponse:
        connection = self._connections.of(context.peer())
        with connection.operation(request.urn) as operation:
            connection.provider = self.plugin.configure(Properties(request.args).plain, operation)
        return protocol.ConfigureResponse(supportsPreview=True)

    @_answering
    def Check(self, request: protocol.CheckRequest, context: Context) -> protocol.CheckResponse:
        naming = Naming(
            resource_name=request.urn.split("::", 3)[3],
            seed=request.randomSeed,
            proposed=request.autonaming.proposed_name,
            mode=request.autonaming.mode if request.HasField("autonaming") else None,
        )
        with self._running(request, context) as (resources, operation):
            checked = resources.check(Properties(request.olds), Properties(request.news), naming, operation)
        return protocol.CheckResponse(inputs=message_of(checked.inputs), failures=_failures(checked.failures))

    @_answering
    def Diff(self, request: protocol.DiffRequest, context: Context) -> protocol.DiffResponse:
        with self._running(request, context, ignore=list(request.ignoreChanges)) as (resources, operation):
            difference = resources.diff(
                request.id,
                Properties(request.olds),
                Properties(request.old_inputs),
                Properties(request.news),
                operation,
            )
        return _diff_response(difference, detailed=True)

    @_answering
    def Create(self, request: protocol.CreateRequest, context: Context) -> protocol.CreateResponse:
        options = {"timeout": request.timeout, "preview": request.preview}
        with self._running(request, context, **options) as (resources, operation):
            identifier, state = resources.create(Properties(request.properties), operation)
        return protocol.CreateResponse(id=identifier, properties=message_of(state))

    @_answering
    def Read(self, request: protocol.ReadRequest, context: Context) -> protocol.ReadResponse:
        with self._running(request, context) as (resources, operation):
            state, inputs = Properties(request.properties), Properties(request.inputs)
            found = resources.read(request.id, state, inputs, operation)
        if found is None:
            return protocol.ReadResponse()
        return protocol.ReadResponse(
            id=found.identifier, properties=message_of(found.state), inputs=message_of(found.inputs)
        )

    @_answering
    def Update(self, request: protocol.UpdateRequest, context: Context) -> protocol.UpdateResponse:
        options = {"timeout": request.timeout, "preview": request.preview, "ignore": list(request.ignoreChanges)}
        with self._running(request, context, **options) as (resources, operation):
            state = resources.update(request.id, Properties(request.olds), Properties(request.news), operation)
        return protocol.UpdateResponse(properties=message_of(state))

    @_answering
    def Delete(self, request: protocol.DeleteRequest, context: Context) -> Empty:
        with self._running(request, context, timeout=request.timeout) as (resources, operation):
            resources.delete(request.id, Properties(request.properties), operation)
        return Empty()

    @_answering
    def Cancel(self, request: Empty, context: Context) -> Empty:
        self._connections.of(context.peer()).cancel()
        return Empty()

    @_answering
    def Invoke(self, request: protocol.InvokeRequest, context: Context) -> protocol.InvokeResponse:
        provider = self._connections.of(context.peer()).provider
        answer = provider.invoke(request.tok, Properties(request.args).plain)
        response = protocol.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(answer))
        return response

    @_answering
    def Construct(self, request: protocol.ConstructRequest, context: Context) -> NoReturn:
        raise self.plugin.refusal(f"the component {request.type}")

    @_answering
    def Call(self, request: protocol.CallRequest, context: Context) -> NoReturn:
        raise self.plugin.refusal(f"the method {request.tok}")

    @_answering
    def Parameterize(self, request: protocol.ParameterizeRequest, context: Context) -> NoReturn:
        raise self.plugin.refusal("parameterizing the package")

    @_answering
    def List(self, request: protocol.ListRequest, context: Context) -> NoReturn:
        raise self.plugin.refusal(f"listing {request.token}")

    @contextlib.contextmanager
    def _running(self, request: Any, context: Context, **options: Any) -> Iterator[tuple[Resources, Operation]]:
        connection = self._connections.of(context.peer())
        with connection.operation(request.urn, **options) as operation:
            context.add_callback(operation.cancel)
            yield connection.provider.resources(operation.token), operation


def _failures(found: Sequence[Failure]) -> list[protocol.CheckFailure]:
    return [protocol.CheckFailure(property=key, reason=reason) for key, reason in found]


def _diff_response(difference: Difference, *, detailed: bool) -> protocol.DiffResponse:
    some, none = protocol.DiffResponse.DIFF_SOME, protocol.DiffResponse.DIFF_NONE
    response = protocol.DiffResponse(
        changes=some if difference.changes else none,
        # The engine's summary of a step shows of what has changed the properties that are named here.
        diffs=list(dict.fromkeys(str(paths.parse(path)[0]) for path in difference.changes)),
        replaces=difference.replaces,
        deleteBeforeReplace=difference.delete_before_replace,
        hasDetailedDiff=detailed,
    )
    for path, change in difference.changes.items() if detailed else ():
        kind = protocol.PropertyDiff.Kind.Value(f"{change.kind}_REPLACE" if change.replaces else change.kind)
        response.detailedDiff[path].CopyFrom(protocol.PropertyDiff(kind=kind, inputDiff=change.of_inputs))
    return response


def start(plugin: Plugin, port: int) -> tuple[grpc.Server, int]:
    """Serve on loopback; port 0 takes a free one. Returns the running server and its port.

    Raises OSError when the port is taken.
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
        raise OSError(f"port {port} of 127.0.0.1 cannot be bound: {error}") from None
    server.start()
    return server, bound


def serve(plugin: Plugin, port: int) -> int:
    """Serve until a signal ends the process; return the exit code: 1 when the port cannot be had."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        server, bound = start(plugin, port)
    except OSError as error:
        print(f"{error}. Choose another port, or stop what listens there.", file=sys.stderr)
        return 1
    if port == 0:
        print(bound, flush=True)
    ended.wait()
    server.stop(_GRACE_SECONDS).wait()
    return 0
