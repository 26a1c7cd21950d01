"""The engine's provider protocol, `pulumirpc.ResourceProvider`, for the packages azure-native and random.

Both are served on one port: every call names its type, so one process is both plugins.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from emulator.azure import VERSIONS, functions, random_password, schema
from emulator.azure.lifecycle import Lifecycle
from emulator.azure.projection import Change
from emulator.azure.validation import problems
from emulator.plugin import wire
from emulator.plugin.errors import CancelledError, PartialError, ProviderError
from emulator.plugin.host import Host
from emulator.plugin.operation import Operation
from emulator.provider.answers import abort_partially

_LOG = logging.getLogger(__name__)
_THREADS = 64
_CONNECTIONS = 256
_RANDOM = "random:"

Call = TypeVar("Call", bound=Callable[..., Any])


def _answering(method: Call) -> Call:
    """Turn errors into gRPC statuses; other than UNKNOWN they tell the engine that nothing happened."""

    @functools.wraps(method)
    def call(self: Servicer, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except PartialError as error:
            abort_partially(context, error)
        except ProviderError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except Exception as error:
            if context.code() is None:
                _LOG.exception("%s failed", method.__name__)
                context.abort(
                    grpc.StatusCode.UNKNOWN,
                    f"the emulated Azure has a defect in {method.__name__}: {error!r}; its log has the trace",
                )
            raise

    return call  # type: ignore[return-value]


class _Connection:
    """One engine's connection: where its messages go, what runs for it, its configured location."""

    def __init__(self, address: str) -> None:
        self.host = Host(address)
        self.location = ""
        self.lifecycle: Lifecycle | None = None
        self._running: set[Operation] = set()
        self._cancelled = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def operation(self, urn: str) -> Iterator[Operation]:
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

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for operation in running:
            operation.cancel()


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves any number of engines at once."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._connections: OrderedDict[str, _Connection] = OrderedDict()
        self._lock = threading.Lock()

    @_answering
    def Handshake(  # noqa: N802
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        self._begin(context.peer(), request.engine_address)
        # Without accept_secrets the engine carries over which inputs are secret into the outputs.
        return provider_pb2.ProviderHandshakeResponse(supports_autonaming_configuration=True)

    @_answering
    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        connection = self._of(context)
        connection.host.close()
        connection.host = Host(request.address)
        return empty_pb2.Empty()

    @_answering
    def GetPluginInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        # The engine wants at least the version of the SDK, and does not say of which of the two plugins.
        return plugin_pb2.PluginInfo(version=max(VERSIONS.values()))

    @_answering
    def GetSchema(  # noqa: N802
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        document = {"name": "azure-native", "version": VERSIONS["azure-native"], "provider": {}, "resources": {}}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(document))

    @_answering
    def CheckConfig(  # noqa: N802
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        failures = [
            provider_pb2.CheckFailure(property=key, reason=reason)
            for key, reason in _foreign(wire.decode(request.news).plain)
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @_answering
    def DiffConfig(  # noqa: N802
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse()

    @_answering
    def Configure(  # noqa: N802
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        given = wire.decode(request.args).plain
        for key, reason in _foreign(given):
            raise ProviderError(f"provider input {key}: {reason}")
        connection = self._of(context)
        subscription = given.get("subscriptionId")
        if subscription:
            connection.lifecycle = Lifecycle(self._lifecycle.arm.of_subscription(_subscription(subscription)))
        connection.location = str(given.get("location") or "")
        return provider_pb2.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    @_answering
    def Check(  # noqa: N802
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        token, news, olds = _token(request), wire.decode(request.news).plain, wire.decode(request.olds).plain
        if token.startswith(_RANDOM):
            _require_password(token)
            found = problems(news, schema.resource(token).inputs)
            inputs = news
        else:
            inputs, found = self._on(context).check(token, news, olds, self._of(context).location)
        failures = [provider_pb2.CheckFailure(property=path, reason=reason) for path, reason in found]
        return provider_pb2.CheckResponse(inputs=wire.encode(inputs), failures=failures)

    @_answering
    def Diff(  # noqa: N802
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        token, before, after = _token(request), wire.decode(request.old_inputs).plain, wire.decode(request.news).plain
        if token.startswith(_RANDOM):
            keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
            changes = {key: Change("UPDATE", replaces=True) for key in keys if key not in request.ignoreChanges}
            return _diff_response(changes, delete_first=False)
        changes = self._on(context).diff(token, before, after, list(request.ignoreChanges), request.id)
        return _diff_response(changes, delete_first=True)

    @_answering
    def Create(  # noqa: N802
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        token, inputs = _token(request), wire.decode(request.properties).plain
        if request.preview:
            if token.startswith(_RANDOM):
                return provider_pb2.CreateResponse(properties=wire.encode({**inputs, "result": wire.UNKNOWN}))
            return provider_pb2.CreateResponse(properties=wire.encode(self._on(context).preview(token, inputs, None)))
        if token.startswith(_RANDOM):
            return provider_pb2.CreateResponse(id="none", properties=wire.encode(random_password.create(inputs)))
        with self._of(context).operation(request.urn) as operation:
            context.add_callback(operation.cancel)
            identifier, outputs = self._on(context).create(token, inputs, operation)
        return provider_pb2.CreateResponse(id=identifier, properties=wire.encode(outputs))

    @_answering
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:  # noqa: N802
        token = _token(request)
        if token.startswith(_RANDOM):
            return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)
        before, inputs = wire.decode(request.properties).plain, wire.decode(request.inputs).plain
        found = self._on(context).read(token, request.id, before, inputs)
        return provider_pb2.ReadResponse(
            id=found.id, properties=wire.encode(found.outputs), inputs=wire.encode(found.inputs)
        )

    @_answering
    def Update(  # noqa: N802
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        token, inputs = _token(request), wire.decode(request.news).plain
        if request.preview:
            outputs = self._on(context).preview(token, inputs, wire.decode(request.olds).plain)
            return provider_pb2.UpdateResponse(properties=wire.encode(outputs))
        with self._of(context).operation(request.urn) as operation:
            context.add_callback(operation.cancel)
            outputs = self._on(context).update(token, request.id, inputs, operation)
        return provider_pb2.UpdateResponse(properties=wire.encode(outputs))

    @_answering
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        token = _token(request)
        if not token.startswith(_RANDOM):
            with self._of(context).operation(request.urn) as operation:
                context.add_callback(operation.cancel)
                self._on(context).delete(token, request.id, operation)
        return empty_pb2.Empty()

    @_answering
    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        self._of(context).cancel()
        return empty_pb2.Empty()

    @_answering
    def Invoke(  # noqa: N802
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        arguments = {key: value for key, value in wire.decode(request.args).plain.items() if value is not None}
        answer = functions.answer(self._on(context).arm, request.tok, arguments)
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(wire.encode(answer))
        return response

    @_answering
    def Construct(  # noqa: N802
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> NoReturn:
        raise ProviderError(f"the emulated Azure emulates no component: {request.type}")

    @_answering
    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> NoReturn:  # noqa: N802
        raise ProviderError(f"the emulated Azure emulates no method: {request.tok}")

    @_answering
    def Parameterize(  # noqa: N802
        self, request: provider_pb2.ParameterizeRequest, context: grpc.ServicerContext
    ) -> NoReturn:
        raise ProviderError("the emulated Azure has the SDK's default API versions only: it is not parameterized")

    @_answering
    def GetMapping(  # noqa: N802
        self, request: provider_pb2.GetMappingRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetMappingResponse:
        return provider_pb2.GetMappingResponse()

    @_answering
    def GetMappings(  # noqa: N802
        self, request: provider_pb2.GetMappingsRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetMappingsResponse:
        return provider_pb2.GetMappingsResponse()

    def _begin(self, peer: str, address: str) -> _Connection:
        connection = _Connection(address)
        with self._lock:
            replaced = self._connections.pop(peer, None)
            self._connections[peer] = connection
            gone = [self._connections.popitem(last=False)[1] for _ in range(len(self._connections) - _CONNECTIONS)]
        for each in [*gone, *([replaced] if replaced else [])]:
            each.host.close()
        return connection

    def _on(self, context: grpc.ServicerContext) -> Lifecycle:
        return self._of(context).lifecycle or self._lifecycle

    def _of(self, context: grpc.ServicerContext) -> _Connection:
        peer = context.peer()
        with self._lock:
            found = self._connections.get(peer)
            if found is not None:
                self._connections.move_to_end(peer)
                return found
        return self._begin(peer, "")


def _token(request: Any) -> str:
    """Return the resource's type, the last one of those in the URN."""
    return str(request.urn.split("::")[2].rpartition("$")[2])


def _foreign(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Refuse what names another endpoint than that of the public cloud, which is the one that is emulated.

    The names of the inputs: schema of pulumi-azure-native, provider inputs `environment` and `metadataHost`.
    """
    found = []
    if given.get("environment") not in (None, "", "public", wire.UNKNOWN):
        found.append(("environment", f"is {given['environment']!r}; the emulated Azure is the public cloud alone"))
    if given.get("metadataHost"):
        found.append(("metadataHost", f"names {given['metadataHost']}; the emulated Azure is reached at no other host"))
    return found


def _subscription(given: Any) -> str:
    """Return the id of the subscription that a program names. Every one is the emulated one."""
    try:
        return str(uuid.UUID(str(given)))
    except ValueError:
        raise ProviderError(f"subscriptionId {given!r} is no id of a subscription: a GUID is expected") from None


def _require_password(token: str) -> None:
    if token != random_password.TOKEN:
        raise ProviderError(
            f"the emulated Azure does not emulate {token}. Of random it emulates {random_password.TOKEN}"
        )


def _diff_response(changes: dict[str, Change], *, delete_first: bool) -> provider_pb2.DiffResponse:
    replaces = [path for path, change in changes.items() if change.replaces]
    some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
    response = provider_pb2.DiffResponse(
        changes=some if changes else none,
        diffs=list(changes),
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and delete_first,
        hasDetailedDiff=True,
    )
    for path, change in changes.items():
        kind = provider_pb2.PropertyDiff.Kind.Value(f"{change.kind}_REPLACE" if change.replaces else change.kind)
        response.detailedDiff[path].CopyFrom(provider_pb2.PropertyDiff(kind=kind, inputDiff=True))
    return response


def start(lifecycle: Lifecycle, port: int) -> tuple[grpc.Server, int]:
    """Serve on loopback; port 0 takes a free one. Returns the running server and its port.

    Raises OSError when the port is taken.
    """
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="call"),
        options=(("grpc.so_reuseport", 0),),
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(lifecycle), server)
    try:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
    except RuntimeError as error:
        raise OSError(f"port {port} of 127.0.0.1 cannot be bound: {error}") from None
    server.start()
    return server, bound
