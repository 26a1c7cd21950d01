"""What a killed engine created in Azure is added to the state, with what stands above it, and its releases go."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulator import recovery

STACK = "urn:pulumi:dev::mlbatch::pulumi:pulumi:Stack::mlbatch-dev"
PROVIDER = "urn:pulumi:dev::mlbatch::pulumi:providers:kubernetes::cluster"
TEAM = "urn:pulumi:dev::mlbatch::mlbatch:tenancy:Team::blue"
OTHER = "urn:pulumi:dev::mlbatch::mlbatch:tenancy:Team::red"


BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
"""When the killed update began."""


def component(urn: str) -> dict[str, Any]:
    return {"urn": urn, "custom": False, "type": urn.split("::")[2], "parent": STACK}


def planned_object(kind: str, name: str, parent: str) -> dict[str, Any]:
    return {
        "urn": f"{parent}$kubernetes:core/v1:{kind}::{name}",
        "custom": True,
        "type": f"kubernetes:core/v1:{kind}",
        "parent": parent,
        "provider": f"{PROVIDER}::1",
        "inputs": {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}},
    }


def test_only_creations_of_the_preview_are_looked_at() -> None:
    steps = [{"op": "same", "newState": component(TEAM)}, {"op": "create", "newState": component(OTHER)}]
    assert [state["urn"] for state in recovery.creations(steps)] == [OTHER]


RELEASE: dict[str, Any] = {
    "urn": f"{TEAM}$kubernetes:helm.sh/v3:Release::volcano",
    "custom": True,
    "type": recovery.RELEASE,
    "parent": TEAM,
    "provider": f"{PROVIDER}::1",
    "inputs": {"name": "volcano", "namespace": "volcano-system", "chart": "volcano", "version": "1.15.0"},
}


@pytest.mark.parametrize(
    ("installed", "began", "pending", "is_own"),
    [
        (BEGAN + timedelta(seconds=1), BEGAN, (), True),
        (BEGAN - timedelta(minutes=5), BEGAN, (), False),
        (BEGAN - timedelta(minutes=5), None, (), False),
        (BEGAN - timedelta(minutes=5), None, (RELEASE["urn"],), True),
        (None, BEGAN, (RELEASE["urn"],), False),
    ],
    ids=["by the killed update", "before it", "nobody knows", "begun by the engine", "not at all"],
)
def test_a_release_goes_where_the_killed_update_has_installed_it(
    installed: datetime | None, began: datetime | None, pending: tuple[str, ...], is_own: bool
) -> None:
    planned = [component(TEAM), planned_object("ConfigMap", "volcano", TEAM), RELEASE]
    found = recovery.left_behind(planned, lambda namespace, name: installed, began, pending)
    assert found == ([("volcano-system", "volcano")] if is_own else [])


UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What a preview shows in place of what it cannot know."""
AZURE = "urn:pulumi:dev::mlbatch::pulumi:providers:azure-native::azure"
NETWORK = "urn:pulumi:dev::mlbatch::mlbatch:azure:Network::network"
VNET = f"{NETWORK}$azure-native:network:VirtualNetwork::vnet"
SUBNET = f"{NETWORK}$azure-native:network:Subnet::nodes"


@dataclass
class InAzure:
    id: str
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)


def planned_in_azure(urn: str, **inputs: Any) -> dict[str, Any]:
    return {
        "urn": urn,
        "custom": True,
        "type": urn.split("$")[1].split("::")[0],
        "parent": NETWORK,
        "provider": f"{AZURE}::{UNKNOWN}",
        "inputs": inputs,
    }


def test_what_azure_has_created_is_in_the_state_as_azure_has_it() -> None:
    stack = {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"}
    provider = {"urn": AZURE, "custom": True, "type": "pulumi:providers:azure-native", "parent": STACK, "inputs": {}}
    network, subnet = planned_in_azure(VNET, name=UNKNOWN), planned_in_azure(SUBNET)
    layer = {**component(TEAM), "deletedWith": "urn:pulumi:dev::mlbatch::pulumi:providers:kubernetes::cluster"}
    planned = [stack, provider, component(NETWORK), network, subnet, layer]
    there = InAzure("/vnets/mlbatch", {"name": "mlbatch"}, {"name": "mlbatch", "provisioningState": "Succeeded"})
    found = recovery.handed_back(planned, {VNET: there, OTHER: InAzure("/others")})
    result = {
        state["urn"]: state for state in recovery.imported({"pending_operations": [{}]}, planned, found)["resources"]
    }
    assert set(result) == {STACK, AZURE, NETWORK, VNET}
    recorded = result[VNET]
    assert (recorded["id"], recorded["inputs"]) == ("/vnets/mlbatch", {"name": "mlbatch"})
    assert recorded["outputs"] == {"name": "mlbatch", "provisioningState": "Succeeded"}
    assert recorded["provider"] == f"{AZURE}::{result[AZURE]['id']}"
    assert result[AZURE]["id"] != UNKNOWN


def test_a_secret_of_a_resource_in_azure_stays_one() -> None:
    planned = planned_in_azure(VNET, name="mlbatch", key="[secret]")
    (found,) = recovery.handed_back([planned], {VNET: InAzure("/vnets/mlbatch", {"name": "mlbatch", "key": "1234"})})
    assert found["inputs"]["name"] == "mlbatch"
    assert json.loads(found["inputs"]["key"]["plaintext"]) == "1234"
