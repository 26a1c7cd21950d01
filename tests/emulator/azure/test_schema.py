"""The SDK's classes define the allowed inputs. Other inputs are rejected with the nearest name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.azure import schema
from emulator.azure.errors import NotEmulatedError
from emulator.azure.services import KINDS
from emulator.plugin.wire import UNKNOWN
from tests.emulator.azure.subscription import (
    CLUSTER,
    KNOWN,
    NETWORK,
    POOL,
    REGISTRY,
    TOKENS,
    Subscription,
    changed,
    pool_inputs,
)


@pytest.mark.parametrize("token", KNOWN)
def test_every_emulated_type_is_one_of_the_sdk_with_a_version_and_the_names_of_its_path(token: str) -> None:
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


@pytest.mark.parametrize("case", yaml.safe_load((Path(__file__).parent / "schema.yaml").read_text()), ids=str)
def test_inputs_are_rejected_with_all_reasons(azure: Subscription, case: dict[str, Any]) -> None:
    ((kind, changes),) = ((name, value) for name, value in case.items() if name != "reasons")
    assert sorted(azure.check(TOKENS[kind], **changed(kind, changes))[1]) == case["reasons"]


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


@pytest.mark.parametrize("token", KNOWN)
def test_every_emulated_input_is_one_of_the_sdk(token: str) -> None:
    def check(emulated: Mapping[str, Any], fields: Mapping[str, schema.Field]) -> None:
        assert emulated.keys() <= fields.keys()
        for name, inside in emulated.items():
            shape = fields[name].shape
            if isinstance(inside, Mapping) and shape.kind != "map":
                check(inside, (shape.of or shape).fields)

    check(KINDS[token].emulated, schema.resource(token).inputs)
