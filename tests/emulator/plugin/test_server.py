"""The plugin kit with a test provider: calls and responses as plain values."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from emulator.plugin import wire
from emulator.plugin.diffing import Change, Difference, differences, not_ignored
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Found, Properties
from emulator.plugin.server import start
from emulator.plugin.wire import UNKNOWN

URN = "urn:pulumi:dev::p::a:b:Parent$notes:index:Note::mine"


class Notes:
    """Notes in memory. Each provider resource has its own shelf. A note's text sets its behaviour."""

    name = "notes"
    version = "1.2.3"

    def __init__(self) -> None:
        self.shelves: dict[str, Properties] = {}

    def check_config(self, inputs: Properties) -> list[Failure]:
        return [] if inputs.get("shelf") else [("shelf", "is missing")]

    def configure(self, inputs: Properties) -> Shelf:
        return Shelf(self.shelves.setdefault(inputs["shelf"], {}))


class Shelf:
    def __init__(self, notes: Properties) -> None:
        self.notes = notes

    def resources(self, token: str) -> Shelf:
        if token != "notes:index:Note":
            raise ProviderError(f"unknown type {token}")
        return self

    def invoke(self, token: str, arguments: Properties) -> Properties:
        return {"token": token, **arguments}

    def check(self, olds: Properties, news: Properties, operation: Operation) -> tuple[Properties, list[Failure]]:
        return {**news, "title": "t"}, [("text", "is empty")] if news.get("text") == "" else []

    def diff(self, identifier: str, inputs: Properties, news: Properties, operation: Operation) -> Difference:
        changes = {path: Change(kind, path == ("title",)) for path, kind in differences(inputs, news)}
        return Difference(not_ignored(changes, operation.ignore), delete_before_replace=True)

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        title, text = inputs["title"], str(inputs.get("text"))
        if operation.preview:
            return "", {**inputs, "length": UNKNOWN}
        if text.startswith("wait"):
            operation.status("waiting")
            operation.sleep(float(text.removeprefix("wait")))
        if text == "half":
            raise PartialError("half written", title, {"title": title}, {"text": text})
        if text == "defect":
            raise KeyError("oops")
        self.notes[title] = inputs
        return title, {**inputs, "length": len(text)}

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        return Found(identifier, state, inputs) if identifier in self.notes else None

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Properties:
        self.notes[identifier] = news
        return news

    def delete(self, identifier: str, operation: Operation) -> None:
        del self.notes[identifier]


class Messages(engine_pb2_grpc.EngineServicer):
    """The engine's receiver of messages."""

    def __init__(self) -> None:
        self.seen: queue.Queue[tuple[str, str, bool]] = queue.Queue()

    def Log(self, request: engine_pb2.LogRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        self.seen.put((request.urn, request.message, request.ephemeral))
        return empty_pb2.Empty()


class Engine:
    """One connection of an engine."""

    def __init__(self, port: int, address: str = "", shelf: str = "") -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=(("grpc.use_local_subchannel_pool", 1),))
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        answer = self.stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=address))
        assert (answer.accept_secrets, answer.accept_outputs, answer.accept_resources) == (False, False, False)
        self.stub.Attach(plugin_pb2.PluginAttach(address=address))
        if shelf:
            self.stub.Configure(provider_pb2.ConfigureRequest(args=wire.encode({"shelf": shelf})))

    def create(self, inputs: dict[str, Any], **options: Any) -> Any:
        return self.stub.Create(provider_pb2.CreateRequest(urn=URN, properties=wire.encode(inputs), **options))

    def close(self) -> None:
        self._channel.close()


@pytest.fixture
def plugin() -> Notes:
    return Notes()


@pytest.fixture
def port(plugin: Notes) -> Iterator[int]:
    server, bound = start(plugin, 0)
    yield bound
    server.stop(None).wait()


@pytest.fixture
def engine(port: int) -> Iterator[Engine]:
    connected = Engine(port, shelf="a")
    yield connected
    connected.close()


def test_a_check_answers_inputs_and_failures(engine: Engine) -> None:
    news = wire.encode({"text": "", "deep": [{"later": UNKNOWN}]})
    answer = engine.stub.Check(provider_pb2.CheckRequest(urn=URN, news=news))
    assert [(each.property, each.reason) for each in answer.failures] == [("text", "is empty")]
    assert wire.decode(answer.inputs) == {"title": "t", "text": "", "deep": [{"later": UNKNOWN}]}


def test_a_diff_names_paths_kinds_and_what_replaces(engine: Engine) -> None:
    old, new = {"title": "t", "tags": ["a", "b"], "x": 1}, {"title": "u", "tags": ["a"], "x": 2, "y": {"z": 1}}
    request = provider_pb2.DiffRequest(
        urn=URN, id="t", old_inputs=wire.encode(old), news=wire.encode(new), ignoreChanges=["x"]
    )
    answer = engine.stub.Diff(request)
    kinds = {path: provider_pb2.PropertyDiff.Kind.Name(each.kind) for path, each in answer.detailedDiff.items()}
    assert kinds == {"title": "UPDATE_REPLACE", "tags[1]": "DELETE", "y": "ADD"}
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["title"], True)


def test_a_preview_returns_unknowns_and_changes_no_resource(plugin: Notes, engine: Engine) -> None:
    answer = engine.create({"title": "t"}, preview=True)
    assert wire.decode(answer.properties) == {"title": "t", "length": UNKNOWN}
    assert plugin.shelves == {"a": {}}


def test_a_resource_is_created_read_updated_and_deleted(engine: Engine) -> None:
    created = engine.create({"title": "t", "text": "hush"})
    assert created.id == "t"
    assert wire.decode(created.properties) == {"title": "t", "text": "hush", "length": 4}
    read = provider_pb2.ReadRequest(urn=URN, id="t", properties=created.properties)
    assert engine.stub.Read(read).properties == created.properties
    update = provider_pb2.UpdateRequest(urn=URN, id="t", news=wire.encode({"title": "t"}))
    assert wire.decode(engine.stub.Update(update).properties) == {"title": "t"}
    engine.stub.Delete(provider_pb2.DeleteRequest(urn=URN, id="t"))
    assert engine.stub.Read(read).id == ""


def test_errors_state_whether_a_resource_changed(engine: Engine) -> None:
    def error(text: str) -> Any:
        with pytest.raises(grpc.RpcError) as raised:
            engine.create({"title": "t", "text": text})
        return raised.value

    partial = error("half")
    trailer = dict(partial.trailing_metadata())["grpc-status-details-bin"]
    detail = provider_pb2.ErrorResourceInitFailed()
    status_pb2.Status.FromString(trailer).details[0].Unpack(detail)
    assert (detail.id, list(detail.reasons)) == ("t", ["half written"])
    assert wire.decode(detail.properties) == {"title": "t"}
    assert wire.decode(detail.inputs) == {"text": "half"}
    defect = error("defect")
    assert defect.code() is grpc.StatusCode.UNKNOWN
    assert "notes has a defect in Create: KeyError('oops')" in defect.details()
    with pytest.raises(grpc.RpcError, match="unknown type notes:index:Other") as refused:
        engine.stub.Read(provider_pb2.ReadRequest(urn=URN.replace("Note::", "Other::"), id="t"))
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_provider_resources_are_identified_by_their_connections(plugin: Notes, port: int) -> None:
    engines = [Engine(port, shelf=shelf) for shelf in "abc"]
    for number, engine in enumerate(engines):
        engine.create({"title": f"t{number}"})
    assert {shelf: list(notes) for shelf, notes in plugin.shelves.items()} == {"a": ["t0"], "b": ["t1"], "c": ["t2"]}
    unconfigured = Engine(port)
    with pytest.raises(grpc.RpcError, match="this connection has no configuration"):
        unconfigured.create({"title": "t"})
    for engine in [*engines, unconfigured]:
        engine.close()


def test_calls_run_side_by_side_and_end_with_their_connection(port: int) -> None:
    first, second = Engine(port, shelf="a"), Engine(port, shelf="b")
    began = time.monotonic()
    requests = [
        provider_pb2.CreateRequest(urn=URN, properties=wire.encode({"title": str(index), "text": "wait 0.5"}))
        for index in range(20)
    ]
    for each in [first.stub.Create.future(request) for request in requests]:
        each.result()
    assert time.monotonic() - began < 5, "twenty waits of half a second, one after the other, take ten"
    endless = first.stub.Create.future(
        provider_pb2.CreateRequest(urn=URN, properties=wire.encode({"title": "t", "text": "wait 60"}))
    )
    time.sleep(0.2)
    first.stub.Cancel(empty_pb2.Empty())
    assert "cancelled" in endless.exception(timeout=10).details()
    assert second.create({"title": "t"}).id == "t"
    first.close()
    second.close()


def test_messages_reach_the_engine_of_the_connection(port: int) -> None:
    messages = Messages()
    server = grpc.server(futures.ThreadPoolExecutor())
    engine_pb2_grpc.add_EngineServicer_to_server(messages, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    engine = Engine(port, address, shelf="a")
    engine.create({"title": "t", "text": "wait 0.2"})
    assert messages.seen.get(timeout=10) == (URN, "waiting", True)
    engine.close()
    server.stop(None).wait()


def test_the_rest_of_the_protocol(engine: Engine) -> None:
    assert engine.stub.GetPluginInfo(empty_pb2.Empty()).version == "1.2.3"
    assert '"name": "notes"' in engine.stub.GetSchema(provider_pb2.GetSchemaRequest()).schema
    failures = engine.stub.CheckConfig(provider_pb2.CheckRequest(urn="u")).failures
    assert [(each.property, each.reason) for each in failures] == [("shelf", "is missing")]
    unknown = provider_pb2.DiffResponse.DIFF_UNKNOWN
    assert engine.stub.DiffConfig(provider_pb2.DiffRequest(urn="u")).changes == unknown
    answer = engine.stub.Invoke(provider_pb2.InvokeRequest(tok="notes:index:f", args=wire.encode({"a": 1})))
    assert wire.decode(getattr(answer, "return")) == {"token": "notes:index:f", "a": 1}
    with pytest.raises(grpc.RpcError) as refused:
        engine.stub.Call(provider_pb2.CallRequest(tok="notes:index:m"))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_port_that_is_in_use_is_named(port: int) -> None:
    with pytest.raises(OSError, match=f"cannot bind port {port} of 127.0.0.1"):
        start(Notes(), port)
    assert threading.active_count() < 300
