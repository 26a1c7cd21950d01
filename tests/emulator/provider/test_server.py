"""The protocol end to end: gRPC in, HTTP requests to an API server out."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from emulator.plugin import wire
from emulator.plugin.server import start
from emulator.plugin.wire import Secret
from emulator.provider import VERSION, writing
from emulator.provider.config import Reachable
from emulator.provider.server import Kubernetes
from tests.emulator.provider.fake_cluster import FakeCluster

URN = "urn:pulumi:dev::p::kubernetes:core/v1:ConfigMap::cm"
INPUTS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cm", "namespace": "default"},
    "data": {"a": "1"},
}
PATH = "/api/v1/namespaces/default/configmaps/cm"


class Engine:
    """One provider resource's connection of an engine."""

    def __init__(self, port: int, kubeconfig: str, **options: str) -> None:
        # A pool of its own for each channel, or gRPC would share one connection between them.
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=(("grpc.use_local_subchannel_pool", 1),))
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self.stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=""))
        self.stub.Attach(plugin_pb2.PluginAttach(address=""))
        self.stub.Configure(provider_pb2.ConfigureRequest(args=wire.encode({"kubeconfig": kubeconfig, **options})))

    def create(self, inputs: dict[str, Any] = INPUTS, urn: str = URN, preview: bool = False) -> tuple[str, Struct]:
        request = provider_pb2.CreateRequest(urn=urn, properties=wire.encode(inputs), preview=preview)
        response = self.stub.Create(request)
        return response.id, response.properties

    def update(self, olds: Struct, inputs: dict[str, Any], preview: bool = False) -> Struct:
        request = provider_pb2.UpdateRequest(
            urn=URN, id="default/cm", olds=olds, news=wire.encode(inputs), preview=preview
        )
        properties: Struct = self.stub.Update(request).properties
        return properties

    def close(self) -> None:
        self._channel.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server, bound = start(Kubernetes(), 0)
    yield bound
    server.stop(None).wait()


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    yield fake
    fake.close()


@pytest.fixture
def engine(port: int, cluster: FakeCluster) -> Iterator[Engine]:
    with contextlib.closing(Engine(port, cluster.kubeconfig)) as connected:
        yield connected


@contextlib.contextmanager
def refused(*parts: str) -> Iterator[None]:
    with pytest.raises(grpc.RpcError) as raised:
        yield
    for part in parts:
        assert part in raised.value.details()


def test_create_is_a_plain_create_and_the_state_has_the_official_shape(cluster: FakeCluster, engine: Engine) -> None:
    identifier, properties = engine.create()
    assert identifier == "default/cm"
    assert ("POST", PATH.removesuffix("/cm"), {"fieldManager": "pulumi-kubernetes"}) in cluster.requests
    state = wire.decode(properties).plain
    assert state["__inputs"] == INPUTS
    assert state["__initialApiVersion"] == "v1"
    assert state["__fieldManager"].startswith("pulumi-kubernetes-")
    assert state["metadata"]["uid"]
    assert "managedFields" not in state["metadata"]


def test_preview_is_a_dry_run(cluster: FakeCluster, engine: Engine) -> None:
    identifier, properties = engine.create(preview=True)
    assert identifier == ""
    assert wire.decode(properties).plain["metadata"]["uid"]
    assert cluster.objects == {}
    assert cluster.requests[-1][2]["dryRun"] == "All"


SILENT = [
    'Internal error occurred: failed calling webhook "mresource.kb.io": no endpoints available',
    "conversion webhook for kueue.x-k8s.io/v1beta2, Kind=ClusterQueue failed: 502 Service has no ready endpoints",
]


@pytest.mark.parametrize("message", SILENT)
@pytest.mark.parametrize("preview", [True, False])
def test_a_webhook_that_does_not_answer_fails_a_preview_as_it_fails_an_update(
    cluster: FakeCluster, engine: Engine, message: str, preview: bool
) -> None:
    status = {"kind": "Status", "reason": "InternalError", "message": message}
    cluster.interfere = lambda method, path: (500, status) if method == "POST" else None
    with pytest.raises(grpc.RpcError, match=re.escape(message)):
        engine.create(preview=preview)


def test_an_object_that_cannot_be_converted_fails_a_refresh(cluster: FakeCluster, engine: Engine) -> None:
    _, state = engine.create()
    status = {"kind": "Status", "reason": "InternalError", "message": SILENT[1]}
    cluster.interfere = lambda method, path: (500, status) if path == PATH else None
    with pytest.raises(grpc.RpcError, match=re.escape(SILENT[1])):
        engine.stub.Read(
            provider_pb2.ReadRequest(urn=URN, id="default/cm", properties=state, inputs=wire.encode(INPUTS))
        )


def test_a_preview_shows_what_a_webhook_denies(cluster: FakeCluster, engine: Engine) -> None:
    status = {"kind": "Status", "reason": "Forbidden", "message": 'admission webhook "v.kb.io" denied the request: bad'}
    cluster.interfere = lambda method, path: (422, status) if method == "POST" else None
    with pytest.raises(grpc.RpcError, match="denied the request: bad"):
        engine.create(preview=True)


def test_preview_answers_from_the_inputs_for_kinds_that_do_not_exist_yet(engine: Engine) -> None:
    inputs = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    _, properties = engine.create(inputs, "urn:pulumi:dev::p::kubernetes:x.io/v1:Thing::t", preview=True)
    assert wire.decode(properties).plain == inputs


def test_update_applies_under_the_objects_own_manager(cluster: FakeCluster, engine: Engine) -> None:
    _, state = engine.create()
    changed = {**INPUTS, "data": {"a": "2"}}
    updated = wire.decode(engine.update(state, changed)).plain
    assert cluster.objects[PATH]["data"] == {"a": "2"}
    assert cluster.requests[-1] == ("PATCH", PATH, {"fieldManager": updated["__fieldManager"], "force": "false"})
    assert updated["__fieldManager"] == wire.decode(state).plain["__fieldManager"]


def test_secrets_stay_secret_in_the_state(engine: Engine) -> None:
    _, properties = engine.create({**INPUTS, "data": {"a": Secret("x"), "b": "y"}})
    state = wire.decode(properties).marked
    assert state["data"] == {"a": Secret("x"), "b": "y"}
    assert state["__inputs"]["data"] == {"a": Secret("x"), "b": "y"}


def test_read_follows_hand_made_changes_and_deletions(cluster: FakeCluster, engine: Engine) -> None:
    _, state = engine.create()
    request = provider_pb2.ReadRequest(urn=URN, id="default/cm", properties=state, inputs=wire.encode(INPUTS))
    unchanged = engine.stub.Read(request)
    assert (unchanged.properties, unchanged.inputs) == (state, wire.encode(INPUTS))
    cluster.objects[PATH] = {**cluster.objects[PATH], "data": {"a": "by hand", "b": "added"}}
    cluster.objects[PATH]["metadata"]["resourceVersion"] = "99"
    assert wire.decode(engine.stub.Read(request).inputs).plain["data"] == {"a": "by hand"}
    del cluster.objects[PATH]
    assert engine.stub.Read(request).id == ""


def test_import_takes_the_inputs_from_the_live_object(engine: Engine) -> None:
    engine.create()
    response = engine.stub.Read(provider_pb2.ReadRequest(urn=URN, id="default/cm"))
    assert wire.decode(response.inputs).plain == INPUTS


def test_delete_is_in_the_foreground_and_what_is_gone_is_a_success(cluster: FakeCluster, engine: Engine) -> None:
    _, state = engine.create()
    request = provider_pb2.DeleteRequest(urn=URN, id="default/cm", properties=state)
    engine.stub.Delete(request)
    assert cluster.objects == {}
    engine.stub.Delete(request)


def test_check_returns_complete_inputs_untouched_and_fills_gaps(engine: Engine) -> None:
    complete = wire.encode(INPUTS)
    assert engine.stub.Check(provider_pb2.CheckRequest(urn=URN, news=complete)).inputs == complete
    request = provider_pb2.CheckRequest(urn=URN, news=wire.encode({"data": {}}), randomSeed=b"x")
    filled = wire.decode(engine.stub.Check(request).inputs).plain
    assert (filled["kind"], filled["metadata"]["namespace"]) == ("ConfigMap", "default")
    assert filled["metadata"]["name"].startswith("cm-")


def test_diff_of_an_unchanged_resource_asks_nobody(cluster: FakeCluster, engine: Engine) -> None:
    _, state = engine.create()
    before = len(cluster.requests)
    request = provider_pb2.DiffRequest(urn=URN, id="default/cm", olds=state, news=wire.encode(INPUTS))
    assert engine.stub.Diff(request).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert len(cluster.requests) == before


def test_an_existing_object_is_not_taken_over(cluster: FakeCluster, engine: Engine) -> None:
    engine.create()
    with refused("already exists", "does not take over", "alias", "pulumi import", "upsertExistingObjects"):
        engine.create(urn=URN + "-renamed")


def test_an_object_of_a_killed_engine_is_not_handed_back(cluster: FakeCluster, engine: Engine) -> None:
    """The API server does not know for which program it was made, and the official provider refuses it."""
    engine.create()
    with refused("already exists"):
        engine.create()


def test_whatever_exists_is_taken_over_where_the_provider_is_told_to(port: int, cluster: FakeCluster) -> None:
    cluster.objects[PATH] = {**INPUTS, "data": {"a": "theirs"}, "metadata": {**INPUTS["metadata"], "uid": "theirs"}}
    with contextlib.closing(Engine(port, cluster.kubeconfig, upsertExistingObjects="true")) as engine:
        identifier, state = engine.create()
    assert identifier == "default/cm"
    assert wire.decode(state).plain["metadata"]["uid"] == "theirs"
    assert cluster.objects[PATH]["data"] == {"a": "1"}
    method, _, query = cluster.requests[-1]
    assert (method, query["force"]) == ("PATCH", "false")


def test_creates_wait_for_what_does_not_exist_yet(
    cluster: FakeCluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_FIRST_PAUSE_SECONDS", 0.01)
    failures = [None, None]

    def interfere(method: str, path: str) -> tuple[int, dict[str, Any]] | None:
        if method == "POST" and failures:
            failures.pop()
            return 404, {"reason": "NotFound", "message": "namespace", "details": {"kind": "namespaces"}}
        return None

    cluster.interfere = interfere
    assert engine.create()[0] == "default/cm"
    assert failures == []


def test_a_missing_kind_is_named(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_FIRST_PAUSE_SECONDS", 0.01)
    inputs = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    with refused('no matches for kind "Thing" in version "x.io/v1"', "CustomResourceDefinition"):
        engine.create(inputs, "urn:pulumi:dev::p::kubernetes:x.io/v1:Thing::t")


def test_an_object_that_does_not_become_ready_is_kept_in_the_state(engine: Engine) -> None:
    annotations = {"pulumi.com/waitFor": "jsonpath={.data.done}=yes", "pulumi.com/timeoutSeconds": "1"}
    inputs = {**INPUTS, "metadata": {**INPUTS["metadata"], "annotations": annotations}}
    with pytest.raises(grpc.RpcError) as raised:
        engine.create(inputs)
    assert "was created, but not ready after 1 s: {.data.done} selects nothing" in raised.value.details()
    trailing = {key for key, _ in raised.value.trailing_metadata()}
    assert "grpc-status-details-bin" in trailing


def test_an_object_whose_wait_is_cancelled_is_kept_in_the_state(cluster: FakeCluster, engine: Engine) -> None:
    annotations = {"pulumi.com/waitFor": "jsonpath={.data.done}=yes"}
    inputs = {**INPUTS, "metadata": {**INPUTS["metadata"], "annotations": annotations}}
    request = provider_pb2.CreateRequest(urn=URN, properties=wire.encode(inputs))
    pending = engine.stub.Create.future(request)
    for _ in range(100):
        if PATH in cluster.objects:
            break
        time.sleep(0.05)
    engine.stub.Cancel(empty_pb2.Empty())
    error = pending.exception(timeout=10)
    assert "was created, but the wait for it to become ready was cancelled" in error.details()
    assert "grpc-status-details-bin" in {key for key, _ in error.trailing_metadata()}


def test_two_provider_resources_with_different_clusters_do_not_mix(port: int) -> None:
    clusters = [FakeCluster(), FakeCluster(), FakeCluster()]
    engines = [Engine(port, cluster.kubeconfig) for cluster in clusters]

    def fill(number: int) -> None:
        for index in range(20):
            inputs = {**INPUTS, "metadata": {"name": f"cm-{number}-{index}", "namespace": "default"}}
            engines[number].create(inputs, f"{URN}-{number}-{index}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(3)))
    for number, cluster in enumerate(clusters):
        names = {path.rpartition("/")[2] for path in cluster.objects}
        assert names == {f"cm-{number}-{index}" for index in range(20)}
    for each in (*engines, *clusters):
        each.close()


def test_a_cancelled_provider_resource_refuses_and_others_go_on(port: int, cluster: FakeCluster) -> None:
    first, second = Engine(port, cluster.kubeconfig), Engine(port, cluster.kubeconfig)
    first.stub.Cancel(empty_pb2.Empty())
    with refused("cancelled"):
        first.create()
    assert second.create()[0] == "default/cm"
    first.close()
    second.close()


def test_an_unreachable_cluster_is_named_and_previews_go_on(port: int) -> None:
    gone = FakeCluster()
    kubeconfig = gone.kubeconfig
    gone.close()
    engine = Engine(port, kubeconfig)
    assert wire.decode(engine.create(preview=True)[1]).plain == INPUTS
    state = wire.encode({**INPUTS, "__inputs": INPUTS, "metadata": {"name": "cm", "namespace": "default"}})
    diff = provider_pb2.DiffRequest(urn=URN, id="default/cm", olds=state, news=wire.encode(INPUTS))
    assert engine.stub.Diff(diff).changes == provider_pb2.DiffResponse.DIFF_NONE
    with refused("http://127.0.0.1:", "does not answer", "check that the cluster is running"):
        engine.create()
    with refused("does not answer", "deleteUnreachable"):
        engine.stub.Delete(provider_pb2.DeleteRequest(urn=URN, id="default/cm", properties=state))
    engine.close()
    lenient = Engine(port, kubeconfig, deleteUnreachable="true")
    lenient.stub.Delete(provider_pb2.DeleteRequest(urn=URN, id="default/cm", properties=state))
    lenient.close()


def test_a_credential_plugin_that_fails_is_told_in_its_own_words(port: int, cluster: FakeCluster) -> None:
    kubeconfig = json.loads(cluster.kubeconfig)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", "echo 'no SSH tunnel to ubuntu@203.0.113.7' >&2; exit 1"],
    }
    kubeconfig["users"][0]["user"] = {"exec": plugin}
    engine = Engine(port, json.dumps(kubeconfig))
    assert wire.decode(engine.create(preview=True)[1]).plain == INPUTS
    with refused("cannot be reached", "no SSH tunnel to ubuntu@203.0.113.7"):
        engine.create()
    assert cluster.requests == []
    engine.close()


def test_a_mistake_in_the_provider_resource_is_a_failure_of_its_key(engine: Engine) -> None:
    news = wire.encode({"kubeconfig": "/no/such/file", "bogus": "x"})
    response = engine.stub.CheckConfig(provider_pb2.CheckRequest(urn="u", news=news))
    assert {failure.property for failure in response.failures} == {"kubeconfig", "bogus"}


def test_what_is_not_done_is_refused_by_name(engine: Engine) -> None:
    with refused("kubernetes:yaml/v2:ConfigFile", "is not supported by this emulated Kubernetes provider"):
        engine.stub.Construct(provider_pb2.ConstructRequest(type="kubernetes:yaml/v2:ConfigFile"))
    with refused("kubernetes:helm:template"):
        engine.stub.Invoke(provider_pb2.InvokeRequest(tok="kubernetes:helm:template"))
    with refused("kubernetes:x:call"):
        engine.stub.Call(provider_pb2.CallRequest(tok="kubernetes:x:call"))
    with refused(
        "a Helm release on a cluster that is not the local one", "is not supported by this emulated Kubernetes provider"
    ):
        engine.create({}, "urn:pulumi:dev::p::kubernetes:helm.sh/v3:Release::r")
    with refused("parameterizing"):
        engine.stub.Parameterize(provider_pb2.ParameterizeRequest())


def test_the_version_is_the_sdks(engine: Engine) -> None:
    assert engine.stub.GetPluginInfo(empty_pb2.Empty()).version == VERSION
    assert f'"version": "{VERSION}"' in engine.stub.GetSchema(provider_pb2.GetSchemaRequest()).schema


def test_a_server_of_one_cluster_reaches_no_other(cluster: FakeCluster) -> None:
    server, bound = start(Kubernetes(Reachable("https://127.0.0.1:1")), 0)
    try:
        with refused(
            "leads to", str(json.loads(cluster.kubeconfig)["clusters"][0]["cluster"]["server"]), "https://127.0.0.1:1"
        ):
            Engine(bound, cluster.kubeconfig)
        with grpc.insecure_channel(f"127.0.0.1:{bound}") as channel:
            request = provider_pb2.CheckRequest(news=wire.encode({"kubeconfig": cluster.kubeconfig}))
            answer = provider_pb2_grpc.ResourceProviderStub(channel).CheckConfig(request)
    finally:
        server.stop(None).wait()
    assert [failure.property for failure in answer.failures] == ["kubeconfig"]
    assert cluster.requests == []
