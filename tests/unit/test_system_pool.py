"""Updates of an AKS cluster that must not replace it: system pool, SSH key, roles that arrive late."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pulumi
import pytest

from components.azure.cluster import AksCluster
from components.azure.identity import ClusterIdentities, ClusterIdentitiesArgs
from components.azure.resource_group import ResourceGroup, ResourceGroupArgs
from components.azure.system_pool import SystemPool, SystemPoolUpdates, SystemPoolUpdatesArgs
from tests.unit.harness import Record, build
from tests.unit.test_azure import KEY, SCOPE, SYSTEM_POOL, cluster_args, only, outputs

EXISTING = {
    "name": "system",
    "mode": "System",
    "count": 2,
    "vmSize": "Standard_D4s_v5",
    "osDiskSizeGB": 128,
    "availabilityZones": ["1", "2", "3"],
}


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *rest: said.append(text))
    return said


def updates(pool: SystemPool, *found: Mapping[str, Any], preview: bool = True) -> Record:
    """Update a cluster that has these pools."""

    def program() -> None:
        cluster = AksCluster("lab", cluster_args(system_pool=pool))
        args = SystemPoolUpdatesArgs(cluster="lab", scope=SCOPE, subnet_id="subnet", pool=pool, found=cluster.pools)
        SystemPoolUpdates("system-pool", args)

    def in_azure(kind: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        added = outputs(kind, name, inputs)
        return {**added, "agentPoolProfiles": list(found)} if kind.endswith(":ManagedCluster") else added

    return build(program, outputs=in_azure, preview=preview)


def test_the_template_and_the_new_cluster_have_the_same_pool() -> None:
    record = updates(replace(SYSTEM_POOL, ssh_access="Disabled"), EXISTING)
    (created,) = only(record, "containerservice:ManagedCluster").inputs["agentPoolProfiles"]
    (sent,) = only(record, "resources:Deployment").inputs["properties"]["template"]["resources"]
    assert {"name": "system", **sent["properties"]} == created
    assert sent["name"] == "lab/system"


def test_the_system_pool_names_its_version_like_the_gpu_pools() -> None:
    """AKS rejects an update of a cluster if only some of its pools name their version."""
    (created,) = only(updates(SYSTEM_POOL, EXISTING), "containerservice:ManagedCluster").inputs["agentPoolProfiles"]
    assert created["orchestratorVersion"] == "1.35"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("vmSize", {"vm_size": "Standard_D8s_v5"}),
        ("osDiskGib", {"os_disk_gib": 256}),
        ("zones", {"zones": ("1",)}),
    ],
)
def test_a_change_that_needs_a_new_pool_names_its_commands(key: str, change: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=rf"systemPool\.{key} .*systemPool\.name.*az aks nodepool delete") as caught:
        updates(replace(SYSTEM_POOL, **change), EXISTING)
    assert "--resource-group lab --cluster-name lab --name system" in str(caught.value)
    updates(replace(SYSTEM_POOL, name="system2", **change), EXISTING)


def test_a_preview_warns_of_nodes_that_somebody_added_and_of_a_second_pool(warnings: list[str]) -> None:
    updates(SYSTEM_POOL, {**EXISTING, "count": 3}, {**EXISTING, "name": "old"}, {"name": "ndv5", "mode": "User"})
    count, second = warnings
    assert "az aks nodepool scale" in count
    assert "--name system --node-count 2" in count
    assert "az aks nodepool delete" in second
    assert "--name old" in second


def test_an_update_does_not_warn_of_what_it_changes(warnings: list[str]) -> None:
    updates(replace(SYSTEM_POOL, count=3), EXISTING, preview=False)
    assert warnings == []


@pytest.mark.parametrize(("key", "warned"), [(KEY, False), (KEY + " another comment", False), ("ssh-rsa BBBB", True)])
def test_another_ssh_key_is_a_command_and_not_a_new_cluster(key: str, warned: bool, warnings: list[str]) -> None:
    def in_azure(kind: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        profile = {"adminUsername": "azureuser", "ssh": {"publicKeys": [{"keyData": KEY}]}}
        return {**outputs(kind, name, inputs), "linuxProfile": profile}

    record = build(lambda: AksCluster("lab", cluster_args(ssh_public_key=key)), outputs=in_azure)
    assert "linuxProfile" in only(record, "containerservice:ManagedCluster").ignore_changes
    assert [("az aks update" in text, "--ssh-key-value" in text) for text in warnings] == [(True, True)] * warned


@pytest.mark.parametrize(("age", "preview", "waited"), [(20, False, 100), (300, False, 0), (20, True, 0)])
def test_a_new_cluster_waits_until_its_roles_are_in_effect(
    age: int, preview: bool, waited: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def in_azure(kind: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        is_older = name.endswith("-subnet")
        created = datetime.now(UTC) - timedelta(seconds=age + 1000 * is_older)
        return {**outputs(kind, name, inputs), "createdOn": created.isoformat()}

    def program() -> None:
        args = ClusterIdentitiesArgs(control_plane="lab-cluster", kubelets="lab-nodes", scope=SCOPE, subnet_id="subnet")
        identities = ClusterIdentities("identities", args)
        ResourceGroup("after", ResourceGroupArgs(scope=SCOPE), pulumi.ResourceOptions(depends_on=identities.arrived))

    monkeypatch.setattr("components.azure.identity.asyncio.sleep", sleep)
    record = build(program, outputs=in_azure, preview=preview)
    assert sum(slept) == pytest.approx(waited, abs=5)
    (after,) = [each for each in record.resources if each.name == "after"]
    assert any(each.endswith("lab-cluster-kubelets") for each in after.dependencies)
