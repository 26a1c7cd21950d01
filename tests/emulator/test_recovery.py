"""What a killed engine created is added to the state, with what stands above it, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from emulator import recovery

STACK = "urn:pulumi:dev::mlbatch::pulumi:pulumi:Stack::mlbatch-dev"
PROVIDER = "urn:pulumi:dev::mlbatch::pulumi:providers:kubernetes::cluster"
TEAM = "urn:pulumi:dev::mlbatch::mlbatch:tenancy:Team::blue"
OTHER = "urn:pulumi:dev::mlbatch::mlbatch:tenancy:Team::red"


BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
"""When the killed update began."""


class Cluster:
    """A cluster that holds the named objects, created by the engine at a time."""

    def __init__(self, *names: str, created: datetime = BEGAN + timedelta(seconds=1)) -> None:
        self.names = set(names)
        self.created = created
        self.deleted: list[str] = []

    def created_by_engine(self, inputs: dict[str, Any]) -> datetime | None:
        return self.created if inputs["metadata"]["name"] in self.names else None

    def installed(self, inputs: dict[str, Any]) -> datetime | None:
        return self.created if inputs["name"] in self.names else None

    def delete(self, inputs: dict[str, Any]) -> None:
        self.deleted.append(inputs["metadata"]["name"])


def component(urn: str) -> dict[str, Any]:
    return {"urn": urn, "custom": False, "type": urn.split("::")[2], "parent": STACK}


def planned_object(kind: str, name: str, parent: str, namespace: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "urn": f"{parent}${kind}::{name}",
        "custom": True,
        "type": f"kubernetes:core/v1:{kind}",
        "parent": parent,
        "provider": f"{PROVIDER}::04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "inputs": {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more.pop("inputs", {})},
        "stackTrace": [{"sourcePosition": "project:///x.py#1"}],
        **more,
    }


def test_only_creations_of_the_preview_are_looked_at() -> None:
    steps = [{"op": "same", "newState": component(TEAM)}, {"op": "create", "newState": component(OTHER)}]
    assert [state["urn"] for state in recovery.creations(steps)] == [OTHER]


def test_an_object_on_the_cluster_is_missing_from_the_state_and_an_absent_one_is_not() -> None:
    there, absent = planned_object("ConfigMap", "there", TEAM), planned_object("ConfigMap", "absent", TEAM)
    assert recovery.missing_from_state([component(TEAM), there, absent], Cluster("there"), since=BEGAN, pending=()) == [
        there
    ]


def test_an_object_from_before_the_update_belongs_to_somebody_else() -> None:
    there = planned_object("ConfigMap", "there", TEAM)
    old = Cluster("there", created=BEGAN - timedelta(minutes=5))
    assert recovery.missing_from_state([there], old, since=BEGAN, pending=()) == []
    assert recovery.missing_from_state([there], old, since=None, pending=()) == []


def test_a_creation_that_the_engine_had_begun_is_taken_over_without_a_time() -> None:
    there = planned_object("ConfigMap", "there", TEAM)
    assert recovery.missing_from_state([there], Cluster("there"), since=None, pending={there["urn"]}) == [there]


def test_a_secret_is_deleted_because_a_preview_hides_what_it_holds() -> None:
    secret = planned_object("Secret", "token", TEAM, inputs={"stringData": {"token": "[secret]"}})
    cluster = Cluster("token")
    assert recovery.missing_from_state([secret], cluster, since=BEGAN, pending=()) == []
    assert cluster.deleted == ["token"]
    old = Cluster("token", created=BEGAN - timedelta(minutes=5))
    assert recovery.missing_from_state([secret], old, since=BEGAN, pending=()) == []
    assert old.deleted == []


def test_the_state_gets_the_object_its_component_and_its_provider_id() -> None:
    deployment = {
        "resources": [
            {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"},
            {"urn": PROVIDER, "custom": True, "type": "pulumi:providers:kubernetes", "id": "1234"},
        ],
        "pending_operations": [{"type": "creating", "resource": {}}],
    }
    namespace = planned_object("Namespace", "blue", TEAM)
    config = planned_object("ConfigMap", "settings", TEAM, "blue", dependencies=[namespace["urn"], "urn:absent"])
    absent = planned_object("ConfigMap", "absent", OTHER, "red")
    planned = [component(TEAM), component(OTHER), namespace, config, absent]
    result = recovery.imported(deployment, planned, [namespace, config], "")
    assert result["pending_operations"] == []
    added = {state["urn"]: state for state in result["resources"][2:]}
    assert set(added) == {TEAM, OTHER, namespace["urn"], config["urn"]}
    recorded = added[config["urn"]]
    assert recorded["id"] == "blue/settings"
    assert added[namespace["urn"]]["id"] == "blue"
    assert recorded["provider"] == f"{PROVIDER}::1234"
    assert recorded["dependencies"] == [namespace["urn"]]
    assert "stackTrace" not in recorded


def test_the_providers_of_what_was_found_are_known_by_urn() -> None:
    assert recovery.providers([planned_object("ConfigMap", "there", TEAM)]) == {PROVIDER}


def test_a_provider_that_is_not_in_the_state_comes_with_what_uses_it_and_reaches_the_cluster() -> None:
    provider = {
        "urn": PROVIDER,
        "custom": True,
        "type": "pulumi:providers:kubernetes",
        "parent": STACK,
        "inputs": {"kubeconfig": "[secret]", "clusterIdentifier": "mlbatch"},
    }
    namespace = planned_object("Namespace", "blue", TEAM)
    result = recovery.imported({}, [component(TEAM), provider, namespace], [namespace], "the local file")
    added = {state["urn"]: state for state in result["resources"]}
    assert added[namespace["urn"]]["provider"] == f"{PROVIDER}::{added[PROVIDER]['id']}"
    inputs = added[PROVIDER]["inputs"]
    assert inputs["clusterIdentifier"] == "mlbatch"
    assert json.loads(inputs["kubeconfig"]["plaintext"]) == "the local file"
    assert added[PROVIDER]["outputs"] == inputs
    assert recovery.imported({}, [component(TEAM), provider], [], "")["resources"][1:] == []


def test_what_a_preview_cannot_know_is_not_taken_for_a_value() -> None:
    unknown = planned_object("ConfigMap", "late", TEAM, inputs={"data": {"address": recovery.UNKNOWN}})
    cluster = Cluster("late")
    assert recovery.missing_from_state([unknown], cluster, since=BEGAN, pending=()) == []
    assert cluster.deleted == []


RELEASE = {
    "urn": f"{TEAM}$kubernetes:helm.sh/v3:Release::volcano",
    "custom": True,
    "type": recovery.RELEASE,
    "parent": TEAM,
    "provider": f"{PROVIDER}::1",
    "inputs": {"name": "volcano", "namespace": "volcano-system", "chart": "volcano", "version": "1.15.0"},
}


def test_a_release_is_taken_in_when_it_is_complete() -> None:
    assert recovery.missing_from_state([RELEASE], Cluster("volcano"), since=BEGAN, pending=()) == [RELEASE]
    assert recovery.missing_from_state([RELEASE], Cluster(), since=BEGAN, pending=()) == []
    deployment = {"resources": [{"urn": PROVIDER, "custom": True, "id": "1234", "type": "pulumi:providers:kubernetes"}]}
    recorded = recovery.imported(deployment, [RELEASE], [RELEASE], "")["resources"][1]
    assert recorded["id"] == "volcano-system/volcano"
    assert recorded["outputs"] == {**RELEASE["inputs"], "__inputs": RELEASE["inputs"]}


def test_a_release_with_a_secret_in_its_values_is_left_to_the_provider() -> None:
    hidden = {**RELEASE, "inputs": {**RELEASE["inputs"], "values": {"password": "[secret]"}}}
    cluster = Cluster("volcano")
    assert recovery.missing_from_state([hidden], cluster, since=BEGAN, pending=()) == []
    assert cluster.deleted == []


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
        "provider": f"{AZURE}::{recovery.UNKNOWN}",
        "inputs": inputs,
    }


def test_what_azure_has_created_is_in_the_state_as_azure_has_it() -> None:
    stack = {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"}
    provider = {"urn": AZURE, "custom": True, "type": "pulumi:providers:azure-native", "parent": STACK, "inputs": {}}
    network, subnet = planned_in_azure(VNET, name=recovery.UNKNOWN), planned_in_azure(SUBNET)
    planned = [stack, provider, component(NETWORK), network, subnet]
    there = InAzure("/vnets/mlbatch", {"name": "mlbatch"}, {"name": "mlbatch", "provisioningState": "Succeeded"})
    found = recovery.handed_back(planned, {VNET: there, OTHER: InAzure("/others")})
    result = {state["urn"]: state for state in recovery.imported({}, planned, found, "")["resources"]}
    assert set(result) == {STACK, AZURE, NETWORK, VNET}
    recorded = result[VNET]
    assert (recorded["id"], recorded["inputs"]) == ("/vnets/mlbatch", {"name": "mlbatch"})
    assert recorded["outputs"] == {"name": "mlbatch", "provisioningState": "Succeeded"}
    assert recorded["provider"] == f"{AZURE}::{result[AZURE]['id']}"
    assert result[AZURE]["id"] != recovery.UNKNOWN


def test_a_secret_of_a_resource_in_azure_stays_one() -> None:
    planned = planned_in_azure(VNET, name="mlbatch", key="[secret]")
    (found,) = recovery.handed_back([planned], {VNET: InAzure("/vnets/mlbatch", {"name": "mlbatch", "key": "1234"})})
    assert found["inputs"]["name"] == "mlbatch"
    assert json.loads(found["inputs"]["key"]["plaintext"]) == "1234"
