"""Which setting of target `aks` becomes which field: each is given another value than its default, and found again."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
import pytest
import yaml

from components.artifacts import Mirror
from components.azure import aks, roles
from stacks.config.secrets import Concealed
from stacks.deploy import deploy
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build
from tests.unit.test_aks import CALLS, CLUSTER, deployed, loaded, only, provided, settings, shipped

CONTAINER = "azure-native:storage:BlobContainer"
WIRED = yaml.safe_load((ROOT / "tests" / "unit" / "aks_fields.yaml").read_text())
READS, WRITES = roles.BLOB_DATA_READER, roles.BLOB_DATA_CONTRIBUTOR


@pytest.fixture(scope="module")
def unusual(mirror: Mirror) -> Record:
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"] |= WIRED["settings"]
    raw["storage"]["volumes"][0]["container"] = "corpus"
    return deployed(mirror, raw)


def fields(value: object, path: str = "") -> dict[str, object]:
    """Return a value's fields by path with dots."""
    if isinstance(value, Mapping):
        return {name: found for key, inner in value.items() for name, found in fields(inner, f"{path}.{key}").items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        items = (fields(inner, f"{path}[{index}]").items() for index, inner in enumerate(value))
        return {name: found for item in items for name, found in item}
    return {path.removeprefix("."): value}


@pytest.mark.parametrize("kind", WIRED["fields"])
def test_every_setting_reaches_its_field(unusual: Record, kind: str) -> None:
    expected = WIRED["fields"][kind]
    found = fields(only(unusual, kind).inputs)
    assert {path: found.get(path) for path in expected} == expected


def test_an_api_server_in_the_network_alone_is_asked_for(mirror: Mirror) -> None:
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"]["apiServer"] = {"private": True}
    profile = only(deployed(mirror, raw), CLUSTER).inputs["apiServerAccessProfile"]
    assert profile == {"enablePrivateCluster": True, "disableRunCommand": True}


WORKSPACE, SETTING = "azure-native:operationalinsights:Workspace", "azure-native:monitor:DiagnosticSetting"


def test_logs_are_exported_to_a_workspace_of_somebody_else(mirror: Mirror) -> None:
    somewhere = "/subscriptions/44444444-5555-6666-7777-888888888888/resourceGroups/lab/providers/"
    somewhere += "Microsoft.OperationalInsights/workspaces/logs"
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"]["diagnostics"] = {"enabled": True, "workspaceId": somewhere}
    found = deployed(mirror, raw)
    assert [item for item in found.resources if item.type == WORKSPACE] == []
    setting = only(found, SETTING)
    assert setting.inputs["workspaceId"] == somewhere
    assert {log["category"] for log in setting.inputs["logs"] if log["enabled"]} == set(aks.LOG_DEFAULTS)


def test_the_export_can_be_switched_off_and_the_logs_are_kept(unusual: Record) -> None:
    """Azure can apply a setting that is left behind to the next cluster, so it is deleted by itself."""
    setting, cluster = only(unusual, SETTING), only(unusual, CLUSTER)
    assert only(unusual, WORKSPACE).retain_on_delete
    assert not setting.protect
    assert setting.inputs["resourceUri"].endswith(f"/managedClusters/{cluster.inputs['resourceName']}")
    assert cluster.urn in unusual.closure(setting)
    assert setting.deleted_with != cluster.urn
    assert setting.replace_with == (cluster.urn,)
    assert setting.delete_before_replace


def test_a_pool_of_reserved_machines_names_their_group(mirror: Mirror) -> None:
    group = "/subscriptions/44444444-5555-6666-7777-888888888888/resourceGroups/lab/providers/"
    group += "Microsoft.Compute/capacityReservationGroups/a100"
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"]["gpuPool"] |= {"vmSize": "Standard_NC24ads_A100_v4", "capacityReservationGroupId": group}
    pool = only(deployed(mirror, raw), "azure-native:containerservice:AgentPool")
    assert pool.inputs["capacityReservationGroupID"] == group
    assert "capacityReservationGroupID" in pool.replace_on_changes


def volume(name: str, **values: object) -> dict[str, object]:
    return {"name": name, "namespace": "blue", "container": f"corpus-{name}", **values}


def test_a_volume_that_is_reached_with_a_token_has_the_stacks_own(mirror: Mirror) -> None:
    raw = {**shipped(), "blobSasToken": Concealed.SECRET, "storage": {"volumes": [volume("a", access="sas")]}}
    stack = loaded(mirror, raw)
    token = "sv=2024-11-04&sr=c&sp=rl&sig=c2VjcmV0"

    def program() -> None:
        deploy(replace(stack, secrets={"blobSasToken": pulumi.Output.secret(token)}))

    (secret,) = [
        item
        for item in build(program, calls=CALLS, outputs=provided).resources
        if item.kind == "Secret" and item.object_name.endswith("-sas-token")
    ]
    assert "sas" in secret.object_name
    assert b64decode(secret.inputs["data"]["azurestorageaccountsastoken"]).decode() == token
    assert "data" in secret.secrets


def test_kueue_places_gangs_by_switch_and_node(mirror: Mirror) -> None:
    raw = settings(scheduling={"packing": "topology", "topology": {"levels": ["ib/torset"]}}, workloads={})
    found = deployed(mirror, raw)
    (topology,) = found.of("Topology")
    levels = [level["nodeLabel"] for level in topology.inputs["spec"]["levels"]]
    assert levels == ["ib/torset", "kubernetes.io/hostname"]
    assert {flavor.inputs["spec"]["topologyName"] for flavor in found.of("ResourceFlavor")} == {topology.object_name}


def test_a_job_mounts_a_claim_of_another_driver(mirror: Mirror) -> None:
    olmo = {"enabled": True, "tag": "1", "data": "lustre", "submission": {"team": "blue"}}
    raw = settings(storage={"claims": [{"name": "lustre", "namespace": "blue"}]}, workloads={"olmo": olmo})
    found = deployed(mirror, raw)
    assert '"claimName": "lustre"' in json.dumps(found.one("AppWrapper", "olmo", "blue").inputs)
    assert [item for item in found.of("PersistentVolumeClaim") if item.object_name == "lustre"] == []
    assert "blob-csi-driver" not in {item.inputs.get("name") for item in found.resources}


@pytest.mark.parametrize(
    ("volumes", "given"),
    [
        pytest.param([], {}, id="no volume, no right"),
        pytest.param([volume("a")], {"corpus-a": READS}, id="reading alone"),
        pytest.param([volume("a"), volume("b")], {"corpus-a": READS, "corpus-b": READS}, id="two that are read"),
        pytest.param(
            [volume("a"), volume("b", readOnly=False)], {"corpus-a": READS, "corpus-b": WRITES}, id="one is written"
        ),
        pytest.param([volume("a", account="elsewhere", readOnly=False)], {}, id="on an account of somebody else"),
        pytest.param(
            [volume("a"), volume("b", account="elsewhere", readOnly=False)],
            {"corpus-a": READS},
            id="what is written elsewhere gives no right here",
        ),
    ],
)
def test_nodes_may_do_with_the_accounts_blobs_what_volumes_need_and_no_more(
    mirror: Mirror, volumes: Sequence[Mapping[str, Any]], given: Mapping[str, str]
) -> None:
    raw = {**shipped(), "storage": {"volumes": volumes}}
    found = deployed(mirror, raw)
    containers = {f"{item.name}-id": item.inputs["containerName"] for item in found.resources if item.type == CONTAINER}
    blobs = [
        (role.inputs["scope"], role.inputs["roleDefinitionId"].rpartition("/")[2])
        for role in found.resources
        if role.type.endswith(":RoleAssignment")
    ]
    assert [scope for scope, role in blobs if role in (READS, WRITES) and scope not in containers] == []
    assert {containers[scope]: role for scope, role in blobs if scope in containers} == given
