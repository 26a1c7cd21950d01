"""The SDK's classes define the allowed inputs. Other inputs are rejected with the nearest name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from emulator.azure import schema
from emulator.azure.errors import NotEmulatedError
from emulator.plugin.wire import UNKNOWN
from tests.emulator.azure.subscription import (
    CLUSTER,
    KNOWN,
    NETWORK,
    POOL,
    REGISTRY,
    Subscription,
    cluster_inputs,
    pool_inputs,
    system_pool,
)


@pytest.mark.parametrize("token", KNOWN)
def test_every_emulated_type_is_one_of_the_sdk_with_a_version_and_the_names_of_its_path(token: str) -> None:
    from emulator.azure.services import KINDS

    found = schema.resource(token)
    assert found.api_version.startswith("20")
    assert set(KINDS[token].parameters) <= found.inputs.keys()


def test_required_types_enums_and_nested_objects_come_from_the_sdk() -> None:
    pool = schema.resource(POOL).inputs
    assert pool["resourceName"].required
    assert not pool["count"].required
    assert pool["count"].shape.kind == "integer"
    assert pool["gpuProfile"].shape.fields["driver"].shape.values == ("Install", "None")
    assert pool["nodeTaints"].shape.of is not None
    assert schema.resource(NETWORK).inputs["subnets"].standalone
    assert schema.resource(POOL).outputs.keys() - pool.keys() >= {"provisioningState", "nodeImageVersion"}


def test_a_missing_required_property_is_named(azure: Subscription) -> None:
    _, failures = azure.check(REGISTRY, resourceGroupName="rg", registryName="images")
    assert failures == ["missing required property 'sku'"]


def test_an_unknown_property_is_refused_with_the_nearest_one(azure: Subscription) -> None:
    _, failures = azure.check(POOL, **pool_inputs(osDiskSizeGb=128))
    assert failures == ["unknown property 'osDiskSizeGb'; did you mean 'osDiskSizeGB'?"]


def test_an_unknown_property_deep_inside_is_refused_with_its_path(azure: Subscription) -> None:
    _, failures = azure.check(CLUSTER, **cluster_inputs(agentPoolProfiles=[system_pool(vmSise="Standard_D4s_v5")]))
    assert failures == ["unknown property 'agentPoolProfiles[0].vmSise'; did you mean 'vmSize'?"]


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"count": "2"}, "'count' should be an integer but is a string"),
        ({"count": True}, "'count' should be an integer but is a boolean (True)"),
        ({"count": 1.5}, "'count' should be an integer but is a number (1.5)"),
        ({"nodeTaints": "a=b:NoSchedule"}, "'nodeTaints' should be a list of a string but is a string"),
        ({"nodeLabels": {"a": 1}}, "'nodeLabels.a' should be a string but is a number (1)"),
        ({"mode": "Userr"}, "'mode' is 'Userr'; allowed are System, User, Gateway; did you mean 'User'?"),
        ({"gpuProfile": {"driver": "Skip"}}, "'gpuProfile.driver' is 'Skip'; allowed are Install, None"),
    ],
)
def test_a_value_of_another_type_or_outside_the_enum_is_refused(
    azure: Subscription, changes: dict[str, object], failure: str
) -> None:
    assert azure.check(POOL, **pool_inputs(**changes))[1] == [failure]


def test_unknown_values_are_not_checked(azure: Subscription) -> None:
    assert azure.check(POOL, **pool_inputs(count=UNKNOWN, mode=UNKNOWN, resourceName=UNKNOWN))[1] == []


@pytest.mark.parametrize(
    ("token", "name", "bad"),
    [
        (REGISTRY, "registryName", "my-registry"),
        (REGISTRY, "registryName", "abcd"),
        ("azure-native:storage:StorageAccount", "accountName", "MyAccount"),
        ("azure-native:storage:StorageAccount", "accountName", "a" * 25),
        (POOL, "agentPoolName", "NDv5"),
        (POOL, "agentPoolName", "averylongpool"),
        ("azure-native:storage:BlobContainer", "containerName", "a--b"),
        ("azure-native:resources:ResourceGroup", "resourceGroupName", "group."),
        (CLUSTER, "resourceName", "-aks"),
    ],
)
def test_a_bad_name_is_refused_before_anything_is_created(azure: Subscription, token: str, name: str, bad: str) -> None:
    _, failures = azure.check(token, **{name: bad})
    assert any(failure.startswith(f"'{name}' is '{bad}'; the name of a ") for failure in failures)


def test_a_type_that_is_not_emulated_is_named(azure: Subscription) -> None:
    for token in ("azure-native:compute:VirtualMachine", "azure-native:containerservice/v20200101:AgentPool"):
        with pytest.raises(NotEmulatedError, match=f"does not emulate {token}"):
            azure.check(token)


def test_a_resource_takes_the_api_version_and_the_location_of_its_group(azure: Subscription) -> None:
    azure.group(location="westeurope")
    checked, _ = azure.check(REGISTRY, resourceGroupName="rg", registryName="images", sku={"name": "Basic"})
    assert checked["location"] == "westeurope"
    assert checked["azureApiVersion"] == "2023-01-01-preview"


def test_a_missing_name_is_not_generated(azure: Subscription) -> None:
    _, failures = azure.check(REGISTRY, resourceGroupName="rg", sku={"name": "Basic"})
    assert failures == ["'registryName' is missing; generated names are not emulated"]


@pytest.mark.parametrize("token", KNOWN)
def test_every_emulated_input_is_one_of_the_sdk(token: str) -> None:
    from emulator.azure.services import KINDS

    def check(emulated: Mapping[str, Any], fields: Mapping[str, schema.Field]) -> None:
        assert emulated.keys() <= fields.keys()
        for name, inside in emulated.items():
            shape = fields[name].shape
            if isinstance(inside, Mapping) and shape.kind != "map":
                check(inside, (shape.of or shape).fields)

    check(KINDS[token].emulated, schema.resource(token).inputs)


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"kubeletDiskType": "OS"}, "'kubeletDiskType' is not emulated"),
        ({"osType": "Windows"}, "'osType' is 'Windows'; only Linux is emulated"),
        ({"networkProfile": {"nodePublicIPTags": []}}, "'networkProfile' is not emulated"),
    ],
)
def test_an_input_that_is_not_emulated_is_named(azure: Subscription, changes: dict[str, object], failure: str) -> None:
    assert azure.check(POOL, **pool_inputs(**changes))[1] == [failure]


def test_an_input_that_is_not_emulated_is_named_in_an_inline_pool_too(azure: Subscription) -> None:
    inputs = cluster_inputs(agentPoolProfiles=[system_pool(enableFIPS=True)], networkProfile={"podCidrs": []})
    _, failures = azure.check(CLUSTER, **inputs)
    assert sorted(failures) == [
        "'agentPoolProfiles.enableFIPS' is not emulated",
        "'networkProfile.podCidrs' is not emulated",
    ]
