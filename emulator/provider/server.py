"""The engine's provider protocol, `pulumirpc.ResourceProvider`, on top of `lifecycle` and `config`."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable
from concurrent import futures
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from emulator.plugin import wire
from emulator.plugin.errors import PartialError, ProviderError
from emulator.provider import VERSION, config
from emulator.provider.answers import abort_partially
from emulator.provider.check import Naming
from emulator.provider.config import Settings
from emulator.provider.diffing import Difference
from emulator.provider.errors import UnreachableError
from emulator.provider.instances import Instances
from emulator.provider.objects import AUTONAMED, RELEASE, Type, not_supported
from emulator.provider.secrecy import annotate, needs_annotation

_LOG = logging.getLogger(__name__)
_LARGEST_MESSAGE = 400 * 1024 * 1024  # what the engine accepts and sends
# A waiting operation holds a thread, and the engine may run any number of operations at once.
_THREADS = 256

Call = TypeVar("Call", bound=Callable[..., Any])


def _answering(method: Call) -> Call:
    """Turn errors into gRPC statuses.

    A status other than UNKNOWN tells the engine that nothing happened to the resource (Pulumi SDK,
    `provider_plugin.go`, `resourceStateAndError`); a server that went away in the middle leaves that open.
    """

    @functools.wraps(method)
    def call(self: Servicer, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except PartialError as error:
            abort_partially(context, error)
        except UnreachableError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except ProviderError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except Exception as error:
            if context.code() is None:
                _LOG.exception("%s failed", method.__name__)
                context.abort(
                    grpc.StatusCode.UNKNOWN,
                    f"the stand-in for the Kubernetes provider has a defect in {method.__name__}: {error!r}; "
                    "its log has the "
                    "trace",
                )
            raise

    return call  # type: ignore[return-value]


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves any number of provider resources at once; see `instances`.

    api_server: address of the one API server that they may reach; None for any.
    """

    def __init__(self, api_server: str | None = None) -> None:
        self._api_server = api_server
        self._instances = Instances()

    @_answering
    def Handshake(  # noqa: N802
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        self._instances.begin(context.peer(), request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=False, accept_outputs=False, supports_autonaming_configuration=True
        )

    @_answering
    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        self._instances.of(context.peer()).attach(request.address)
        return empty_pb2.Empty()

    @_answering
    def GetPluginInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    @_answering
    def GetSchema(  # noqa: N802
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        if request.subpackage_name:
            raise ProviderError(not_supported(f"the schema of the parameterized package {request.subpackage_name!r}"))
        schema = {"name": "kubernetes", "version": VERSION, "provider": {}, "resources": {}}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    @_answering
    def CheckConfig(  # noqa: N802
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        found = config.problems(wire.decode(request.news).plain, self._api_server)
        failures = [provider_pb2.CheckFailure(property=key, reason=reason) for key, reason in found]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @_answering
    def DiffConfig(  # noqa: N802
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        difference = config.compare(wire.decode(request.olds).plain, wire.decode(request.news).plain)
        return provider_pb2.DiffResponse(
            changes=_changes(bool(difference.changed)), diffs=difference.changed, replaces=difference.replaces
        )

    @_answering
    def Configure(  # noqa: N802
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        inputs = wire.decode(request.args).plain
        if not inputs:
            prefix = "kubernetes:config:"
            inputs = {
                key.removeprefix(prefix): value for key, value in request.variables.items() if key.startswith(prefix)
            }
        self._instances.of(context.peer()).configure(Settings.of(inputs, self._api_server))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    @_answering
    def Check(  # noqa: N802
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        kind = Type.of_urn(request.urn)
        instance = self._instances.of(context.peer())
        with instance.operation(request.urn) as operation:
            operations = instance.operations(kind)
            if operations.skips_updates():
                operation.warn("the cluster is unreachable and skipUpdateUnreachable is set: nothing is changed")
                return provider_pb2.CheckResponse(inputs=request.olds)
            decoded = wire.decode(request.news)
            olds = request.olds
            naming = Naming(
                resource_name=request.urn.split("::", 3)[3],
                exists=bool(olds.fields),
                previous=wire.text(olds, "name") if kind.token == RELEASE else wire.text(olds, "metadata", "name"),
                autonamed=wire.text(olds, "metadata", "annotations", AUTONAMED) == "true",
                seed=request.randomSeed,
                proposed=request.autonaming.proposed_name,
                mode=request.autonaming.mode if request.HasField("autonaming") else None,
            )
            inputs = operations.check(decoded, kind, naming, operation)
        if needs_annotation(inputs, decoded.has_secrets):
            return provider_pb2.CheckResponse(inputs=wire.encode(annotate(inputs, decoded.marked)))
        if inputs is decoded.plain:
            return provider_pb2.CheckResponse(inputs=request.news)
        return provider_pb2.CheckResponse(inputs=wire.encode(inputs))

    @_answering
    def Diff(  # noqa: N802
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        kind = Type.of_urn(request.urn)
        instance = self._instances.of(context.peer())
        with instance.operation(request.urn) as operation:
            difference = instance.operations(kind).diff(
                kind, request.olds, request.news, list(request.ignoreChanges), operation
            )
        return _diff_response(difference)

    @_answering
    def Create(  # noqa: N802
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        kind = Type.of_urn(request.urn)
        instance = self._instances.of(context.peer())
        with instance.operation(request.urn) as operation:
            context.add_callback(operation.cancel)
            identifier, properties = instance.operations(kind).create(
                kind, request.properties, request.timeout, request.preview, operation
            )
        return provider_pb2.CreateResponse(id=identifier, properties=properties)

    @_answering
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:  # noqa: N802
        kind = Type.of_urn(request.urn)
        instance = self._instances.of(context.peer())
        with instance.operation(request.urn) as operation:
            context.add_callback(operation.cancel)
            result = instance.operations(kind).read(kind, request.id, request.properties, request.inputs, operation)
        return provider_pb2.ReadResponse(id=result.identifier, properties=result.properties, inputs=result.inputs)

    @_answering
    def Update(  # noqa: N802
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        kind = Type.of_urn(request.urn)
        instance = self._instances.of(context.peer())
        with instance.operation(request.urn) as operation:
            context.add_callback(operation.cancel)
            properties = instance.operations(kind).update(
                kind,
                request.id,
                request.olds,
                request.news,
                request.timeout,
                list(request.ignoreChanges),
                request.preview,
                operation,
            )
        return provider_pb2.UpdateResponse(properties=properties)

    @_answering
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        kind = Type.of_urn(request.urn)
        instance = self._instances.of(context.peer())
        with instance.operation(request.urn) as operation:
            context.add_callback(operation.cancel)
            instance.operations(kind).delete(kind, request.id, request.properties, request.timeout, operation)
        return empty_pb2.Empty()

    @_answering
    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        self._instances.of(context.peer()).cancel()
        return empty_pb2.Empty()

    @_answering
    def Construct(  # noqa: N802
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> NoReturn:
        raise ProviderError(not_supported(f"the component {request.type}"))

    @_answering
    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> NoReturn:  # noqa: N802
        raise ProviderError(not_supported(f"the function {request.tok}"))

    @_answering
    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> NoReturn:  # noqa: N802
        raise ProviderError(not_supported(f"the method {request.tok}"))

    @_answering
    def Parameterize(  # noqa: N802
        self, request: provider_pb2.ParameterizeRequest, context: grpc.ServicerContext
    ) -> NoReturn:
        raise ProviderError(not_supported("parameterizing the package"))

    @_answering
    def List(self, request: provider_pb2.ListRequest, context: grpc.ServicerContext) -> NoReturn:  # noqa: N802
        raise ProviderError(not_supported(f"listing {request.token}"))

    @_answering
    def GetMapping(  # noqa: N802
        self, request: provider_pb2.GetMappingRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetMappingResponse:
        # An empty answer means that there is no mapping; converting foreign programs is not this provider's business.
        return provider_pb2.GetMappingResponse()

    @_answering
    def GetMappings(  # noqa: N802
        self, request: provider_pb2.GetMappingsRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetMappingsResponse:
        return provider_pb2.GetMappingsResponse()


def _changes(some: bool) -> Any:
    return provider_pb2.DiffResponse.DIFF_SOME if some else provider_pb2.DiffResponse.DIFF_NONE


def _diff_response(difference: Difference) -> provider_pb2.DiffResponse:
    response = provider_pb2.DiffResponse(
        changes=_changes(bool(difference.changes)),
        replaces=difference.replaces,
        deleteBeforeReplace=difference.delete_before_replace,
        hasDetailedDiff=True,
    )
    for path, change in difference.changes.items():
        kind = provider_pb2.PropertyDiff.Kind.Value(f"{change.kind}_REPLACE" if change.replaces else change.kind)
        response.detailedDiff[path].CopyFrom(provider_pb2.PropertyDiff(kind=kind, inputDiff=change.of_inputs))
    return response


def start(port: int, api_server: str | None = None) -> tuple[grpc.Server, int]:
    """Serve on loopback; port 0 takes a free one. Returns the running server and its port.

    api_server: address of the one API server that may be reached; None for any.

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
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(api_server), server)
    try:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
    except RuntimeError as error:
        raise OSError(f"port {port} of 127.0.0.1 cannot be bound: {error}") from None
    server.start()
    return server, bound
