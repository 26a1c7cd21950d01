"""The engine's protocol: contents of calls, and errors."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from emulator.azure import faults, random_password
from emulator.azure.server import Azure
from emulator.plugin import wire
from emulator.plugin.server import start
from tests.emulator.azure.subscription import GROUP, REGISTRY, USUAL, Subscription


@pytest.fixture
def stub(azure: Subscription) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    server, port = start(Azure(azure.lifecycle), 0)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        configure(stub)
        yield stub
    server.stop(0).wait()


def urn(token: str, name: str = "thing") -> str:
    return f"urn:pulumi:stack::project::mlbatch:azure:Some${token}::{name}"


def configure(stub: provider_pb2_grpc.ResourceProviderStub, **inputs: str) -> None:
    stub.Configure(provider_pb2.ConfigureRequest(args=wire.encode(dict(inputs))))


def create(stub: provider_pb2_grpc.ResourceProviderStub, token: str, preview: bool = False, **inputs: object) -> Any:
    checked = stub.Check(provider_pb2.CheckRequest(urn=urn(token), news=wire.encode(inputs)))
    assert list(checked.failures) == []
    request = provider_pb2.CreateRequest(urn=urn(token), properties=checked.inputs, preview=preview)
    return stub.Create(request)


def test_failures_of_a_check_name_property_and_reason(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    answer = stub.Check(provider_pb2.CheckRequest(urn=urn(REGISTRY), news=wire.encode({"resourceGroupName": "rg"})))
    assert [(each.property, each.reason) for each in answer.failures] == [("sku", "missing required property 'sku'")]


def test_a_refusal_reports_to_the_engine_that_no_resource_changed(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        create(stub, GROUP, resourceGroupName="rg", location="mars")
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "LocationNotAvailableForResourceGroup" in caught.value.details()


def test_a_failed_operation_hands_the_resource_to_the_engine(
    azure: Subscription, stub: provider_pb2_grpc.ResourceProviderStub
) -> None:
    azure.group()
    azure.fault("images1", faults.FAILED, 1)
    with pytest.raises(grpc.RpcError) as caught:
        create(stub, REGISTRY, **USUAL["Registry"])
    trailer = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    detail = provider_pb2.ErrorResourceInitFailed()
    status_pb2.Status.FromString(trailer).details[0].Unpack(detail)
    assert detail.id.endswith("/registries/images1")
    assert wire.decode(detail.properties)["provisioningState"] == "Failed"


def test_a_preview_creates_no_resource(azure: Subscription, stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    answer = create(stub, GROUP, preview=True, resourceGroupName="rg", location="eastus")
    assert wire.decode(answer.properties)["location"] == "eastus"
    assert azure.arm.state().resources == {}


def test_every_subscription_that_a_program_names_is_the_emulated_one(
    azure: Subscription, stub: provider_pb2_grpc.ResourceProviderStub
) -> None:
    mine = "12345678-1234-4123-8123-123456789abc"
    configure(stub, subscriptionId=mine, location="westeurope")
    answer = create(stub, GROUP, resourceGroupName="rg")
    assert answer.id == f"/subscriptions/{mine}/resourceGroups/rg"
    assert wire.decode(answer.properties)["location"] == "westeurope"
    with pytest.raises(grpc.RpcError, match="not the id of a subscription"):
        configure(stub, subscriptionId="mine")


def test_a_password_is_unknown_in_a_preview_and_does_not_change_later(
    stub: provider_pb2_grpc.ResourceProviderStub,
) -> None:
    token = random_password.TOKEN
    preview = create(stub, token, preview=True, length=12)
    assert wire.decode(preview.properties)["result"] is wire.UNKNOWN
    made = create(stub, token, length=12)
    request = provider_pb2.ReadRequest(id="none", urn=urn(token), properties=made.properties)
    assert stub.Read(request).properties == made.properties
    old, new = wire.encode({"length": 12}), wire.encode({"length": 14})
    diff = stub.Diff(provider_pb2.DiffRequest(urn=urn(token), old_inputs=old, news=new))
    assert list(diff.replaces) == ["length"]
    with pytest.raises(grpc.RpcError, match="does not emulate random:index/randomId:RandomId"):
        create(stub, "random:index/randomId:RandomId", length=1)


def test_a_function_is_answered_and_an_unknown_one_named(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    answer = stub.Invoke(provider_pb2.InvokeRequest(tok="azure-native:authorization:getClientConfig"))
    assert wire.decode(getattr(answer, "return"))["tenantId"] == "5ca1ab1e-0000-4000-8000-0000000000b2"
    with pytest.raises(grpc.RpcError, match="does not emulate azure-native:compute:getDisk"):
        stub.Invoke(provider_pb2.InvokeRequest(tok="azure-native:compute:getDisk"))


@pytest.mark.parametrize(
    ("key", "value"), [("environment", "usgovernment"), ("metadataHost", "management.example.org:443")]
)
def test_another_endpoint_than_the_public_clouds_is_refused(
    stub: provider_pb2_grpc.ResourceProviderStub, key: str, value: str
) -> None:
    request = provider_pb2.CheckRequest(news=wire.encode({key: value}))
    ((found, reason),) = [(each.property, each.reason) for each in stub.CheckConfig(request).failures]
    assert found == key
    assert value in reason
    with pytest.raises(grpc.RpcError, match=f"provider input {key}: .*{value}"):
        configure(stub, **{key: value})
    assert not stub.CheckConfig(provider_pb2.CheckRequest(news=wire.encode({"environment": "public"}))).failures
