"""Updates, replacements, and outputs of previews."""

from typing import Any

import pytest

from emulator.azure.services.base import CLUSTER as CLUSTER_TYPE
from emulator.plugin.wire import UNKNOWN
from tests.emulator.azure.subscription import (
    ACCOUNT,
    ASSIGNMENT,
    CLUSTER,
    GROUP,
    NETWORK,
    POOL,
    SUBNET,
    TOKENS,
    USUAL,
    Subscription,
    cluster_inputs,
    pool_inputs,
)


@pytest.mark.parametrize(
    ("token", "before", "after", "replaces"),
    [
        *(
            (POOL, pool_inputs(), pool_inputs(**{name: value}), {name: replaces})
            for name, value, replaces in (
                ("count", 4, False),
                ("nodeLabels", {"a.b/c": "d"}, False),
                ("osDiskSizeGB", 256, False),
                ("vmSize", "Standard_ND96isr_H200_v5", True),
                ("agentPoolName", "other", True),
                ("resourceName", "other", True),
            )
        ),
        (CLUSTER, cluster_inputs(), cluster_inputs(dnsPrefix="other"), {"dnsPrefix": True}),
        (CLUSTER, cluster_inputs(), cluster_inputs(disableLocalAccounts=True), {"disableLocalAccounts": False}),
        (
            CLUSTER,
            cluster_inputs(networkProfile={"serviceCidr": "10.0.0.0/16", "loadBalancerSku": "standard"}),
            cluster_inputs(networkProfile={"serviceCidr": "10.1.0.0/16", "loadBalancerSku": "basic"}),
            {"networkProfile.serviceCidr": True, "networkProfile.loadBalancerSku": False},
        ),
        (GROUP, {"location": "eastus"}, {"location": "East US"}, {}),
        (GROUP, {"location": "eastus"}, {"location": "westus"}, {"location": True}),
        (ACCOUNT, {"isHnsEnabled": False}, {"isHnsEnabled": True}, {"isHnsEnabled": True}),
        (ASSIGNMENT, {"principalId": "a"}, {"principalId": UNKNOWN}, {"principalId": True}),
        (SUBNET, {"addressPrefix": "10.0.0.0/24"}, {"addressPrefix": "10.0.1.0/24"}, {"addressPrefix": False}),
    ],
)
def test_inputs_that_replace_a_resource(
    azure: Subscription, token: str, before: dict[str, Any], after: dict[str, Any], replaces: dict[str, bool]
) -> None:
    found = azure.lifecycle.diff(token, before, after, [])
    assert {path: change.replaces for path, change in found.items()} == replaces


def test_ignored_changes_are_not_in_the_diff(azure: Subscription) -> None:
    assert azure.lifecycle.diff(POOL, pool_inputs(), pool_inputs(count=4), ["count"]) == {}


def test_a_preview_of_a_create_returns_only_the_inputs(azure: Subscription) -> None:
    outputs = azure.lifecycle.preview(CLUSTER, cluster_inputs(identityProfile=None), None)
    assert outputs["dnsPrefix"] == "aks"
    assert outputs["fqdn"] is UNKNOWN
    assert outputs["identityProfile"] is UNKNOWN
    assert outputs["identity"]["type"] == "SystemAssigned"
    assert outputs["identity"]["principalId"] is UNKNOWN
    assert outputs["agentPoolProfiles"][0]["provisioningState"] is UNKNOWN
    assert "resourceGroupName" not in outputs


def test_a_preview_of_an_update_also_returns_name_and_location(aks: Subscription) -> None:
    recorded = aks.pool()[1]
    outputs = aks.lifecycle.preview(POOL, pool_inputs(count=4), recorded)
    assert (outputs["name"], outputs["count"], outputs["provisioningState"]) == ("ndv5", 4, UNKNOWN)


def test_an_update_of_a_network_keeps_the_subnets_that_are_resources_of_their_own(azure: Subscription) -> None:
    azure.group()
    inputs = USUAL["VirtualNetwork"]
    network, recorded = azure.create(NETWORK, **inputs)
    azure.create(SUBNET, **USUAL["Subnet"])
    checked, _ = azure.check(NETWORK, **inputs)
    # The subnet is not drift of a network that declares no subnets.
    assert azure.lifecycle.read(NETWORK, network, recorded, checked).inputs == checked
    outputs = azure.update(NETWORK, network, **inputs, tags={"team": "ml"})
    assert [subnet["name"] for subnet in outputs["subnets"]] == ["nodes0"]
    assert outputs["tags"] == {"team": "ml"}


def test_an_export_reads_back_with_every_log_and_goes_with_its_cluster(aks: Subscription) -> None:
    """Logs that are not exported are not drift. A log that somebody switches off is."""
    cluster = aks.arm.state().of_type(CLUSTER_TYPE)[0].id
    workspace, _ = aks.create(TOKENS["Workspace"], **USUAL["Workspace"])
    inputs = {**USUAL["DiagnosticSetting"], "resourceUri": cluster, "workspaceId": workspace}
    setting, recorded = aks.create(TOKENS["DiagnosticSetting"], **inputs)
    logs = {log["category"]: log["enabled"] for log in recorded["logs"]}
    assert (logs["guard"], logs["kube-audit"]) == (True, False)
    checked, _ = aks.check(TOKENS["DiagnosticSetting"], **inputs)
    assert aks.lifecycle.read(TOKENS["DiagnosticSetting"], setting, recorded, checked).inputs == checked
    with aks.arm.edit() as state:
        state.get(setting).properties["logs"][0]["enabled"] = False
    found = aks.lifecycle.read(TOKENS["DiagnosticSetting"], setting, recorded, checked)
    assert found.inputs["logs"][0] == {"category": "guard", "enabled": False}
    aks.delete(CLUSTER, cluster)
    assert aks.arm.get(setting) is None
    assert aks.arm.get(workspace) is not None
