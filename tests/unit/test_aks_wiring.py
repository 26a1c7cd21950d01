"""Which setting of target `aks` becomes which field: each is given another value than its default, and found again."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
import pytest

from components.artifacts import Mirror
from components.azure import roles
from stacks.config.secrets import Concealed
from stacks.deploy import deploy
from tests.unit.harness import Record, build
from tests.unit.test_aks import CALLS, CLUSTER, POOL, deployed, loaded, only, provided, settings, shipped

ACCOUNT = "azure-native:storage:StorageAccount"
CONTAINER = "azure-native:storage:BlobContainer"
READS, WRITES = roles.BLOB_DATA_READER, roles.BLOB_DATA_CONTRIBUTOR
NETWORK = "azure-native:network:VirtualNetwork"
REGISTRY = "azure-native:containerregistry:Registry"
WINDOW = "azure-native:containerservice:MaintenanceConfiguration"
GROUP = "22222222-3333-4444-5555-666666666666"


@pytest.fixture(scope="module")
def unusual(mirror: Mirror) -> Record:
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"] |= {
        "location": "westus3",
        "resourceGroup": "lab",
        "nodeResourceGroup": "lab-machines",
        "clusterName": "lab-cluster",
        "adminUser": "operator7",
        "osSku": "Ubuntu",
        "tags": {"owner": "research"},
        "registry": {"name": "labimages", "sku": "Premium", "adminUser": True},
        "network": {
            "vnetCidr": "10.200.0.0/20",
            "nodeCidr": "10.200.4.0/23",
            "podCidr": "10.210.0.0/16",
            "serviceCidr": "10.220.0.0/16",
            "policy": "calico",
        },
        "apiServer": {"authorizedRanges": ["203.0.113.0/25"], "runCommand": True},
        "access": {"adminGroups": [GROUP]},
        "upgrades": {
            "kubernetes": "none",
            "nodeOs": "SecurityPatch",
            "drainTimeoutMinutes": 77,
            "window": {"day": "Friday", "start": "03:30", "hours": 5, "everyWeeks": 2, "utcOffset": "+02:00"},
        },
        "systemPool": {"name": "services", "count": 3, "vmSize": "Standard_D8s_v5", "osDiskGib": 256, "zones": ["2"]},
        "gpuPool": {
            "name": "h100",
            "vmSize": "Standard_ND96isr_H100_v5",
            "count": 3,
            "autoscale": {"min": 1, "max": 6},
            "osDiskGib": 512,
            "zones": ["3"],
            "maxPods": 60,
            "taint": False,
            "anyRegion": True,
        },
        "storage": {
            "account": "labdata",
            "container": "corpus",
            "sku": "Standard_ZRS",
            "allowedRanges": ["203.0.113.7/32", "203.0.113.128/25"],
            "sharedKey": True,
        },
    }
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


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            CLUSTER,
            {
                "location": "westus3",
                "resourceGroupName": "lab",
                "nodeResourceGroup": "lab-machines",
                "resourceName": "lab-cluster",
                "linuxProfile.adminUsername": "operator7",
                "tags.owner": "research",
                "networkProfile.podCidr": "10.210.0.0/16",
                "networkProfile.serviceCidr": "10.220.0.0/16",
                "networkProfile.dnsServiceIP": "10.220.0.10",
                "networkProfile.networkPolicy": "calico",
                "apiServerAccessProfile.authorizedIPRanges": ["203.0.113.0/25"],
                "apiServerAccessProfile.disableRunCommand": False,
                "apiServerAccessProfile.enablePrivateCluster": False,
                "aadProfile.adminGroupObjectIDs": [GROUP],
                "disableLocalAccounts": True,
                "autoUpgradeProfile.upgradeChannel": "none",
                "autoUpgradeProfile.nodeOSUpgradeChannel": "SecurityPatch",
                "agentPoolProfiles[0].name": "services",
                "agentPoolProfiles[0].count": 3,
                "agentPoolProfiles[0].vmSize": "Standard_D8s_v5",
                "agentPoolProfiles[0].osDiskSizeGB": 256,
                "agentPoolProfiles[0].osSKU": "Ubuntu",
                "agentPoolProfiles[0].availabilityZones": ["2"],
            },
        ),
        (
            POOL,
            {
                "agentPoolName": "h100",
                "resourceName": "lab-cluster",
                "resourceGroupName": "lab",
                "count": 3,
                "enableAutoScaling": True,
                "minCount": 1,
                "maxCount": 6,
                "osDiskSizeGB": 512,
                "osSKU": "Ubuntu",
                "availabilityZones": ["3"],
                "maxPods": 60,
                "nodeTaints": [],
                "upgradeSettings.drainTimeoutInMinutes": 77,
                "gpuProfile.driver": "None",
                "tags.owner": "research",
            },
        ),
        (
            WINDOW,
            {
                "resourceName": "lab-cluster",
                "configName": "aksManagedNodeOSUpgradeSchedule",
                "maintenanceWindow.schedule.weekly.dayOfWeek": "Friday",
                "maintenanceWindow.schedule.weekly.intervalWeeks": 2,
                "maintenanceWindow.startTime": "03:30",
                "maintenanceWindow.durationHours": 5,
                "maintenanceWindow.utcOffset": "+02:00",
            },
        ),
        (
            ACCOUNT,
            {
                "accountName": "labdata",
                "location": "westus3",
                "sku.name": "Standard_ZRS",
                "allowSharedKeyAccess": True,
                "networkRuleSet.ipRules[0].iPAddressOrRange": "203.0.113.7",
                "networkRuleSet.ipRules[1].iPAddressOrRange": "203.0.113.128/25",
                "tags.owner": "research",
            },
        ),
        (REGISTRY, {"registryName": "labimages", "sku.name": "Premium", "adminUserEnabled": True}),
        (NETWORK, {"addressSpace.addressPrefixes": ["10.200.0.0/20"]}),
        (CONTAINER, {"containerName": "corpus", "publicAccess": "None"}),
    ],
    ids=lambda value: value.rpartition(":")[2] if isinstance(value, str) else "",
)
def test_every_setting_reaches_its_field(unusual: Record, kind: str, expected: dict[str, object]) -> None:
    found = fields(only(unusual, kind).inputs)
    assert {path: found.get(path) for path in expected} == expected


def test_an_api_server_in_the_network_alone_is_asked_for(mirror: Mirror) -> None:
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"]["apiServer"] = {"private": True}
    profile = only(deployed(mirror, raw), CLUSTER).inputs["apiServerAccessProfile"]
    assert profile == {"enablePrivateCluster": True, "disableRunCommand": True}


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
