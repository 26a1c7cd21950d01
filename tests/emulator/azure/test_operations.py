"""Asynchronous operations, faults, and changes made without the engine."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest

from emulator.azure import faults
from emulator.azure.__main__ import main
from emulator.azure.errors import ArmError
from emulator.azure.functions import answer
from emulator.azure.services import KINDS
from emulator.plugin.errors import PartialError, ProviderError
from tests.emulator.azure.subscription import (
    CLUSTER,
    DEPLOYMENT,
    FEATURE,
    GROUP,
    IDENTITY,
    POOL,
    REGISTRY,
    Subscription,
    changed,
    cluster_inputs,
    pool_inputs,
)

REGISTRATION = {"providerNamespace": "Microsoft.ContainerService", "featureName": "AKSInfinibandSupport"}


def state_of_feature(azure: Subscription) -> str:
    found = answer(azure.arm, "azure-native:features:getSubscriptionFeatureRegistration", dict(REGISTRATION))
    return str(found["properties"]["state"])


def provisioning_state(azure: Subscription, resource: str) -> str:
    found = azure.arm.get(resource)
    assert found is not None
    return str(found["provisioningState"])


def registry(azure: Subscription, **changes: object) -> tuple[str, dict[str, object]]:
    return azure.create(REGISTRY, **changed("Registry", changes))


def test_a_registration_takes_time(azure: Subscription) -> None:
    assert state_of_feature(azure) == "NotRegistered"
    azure.register()
    assert state_of_feature(azure) == "Registering"
    azure.clock.sleep(60)
    assert state_of_feature(azure) == "Registered"


def test_the_official_provider_treats_every_feature_as_existing(azure: Subscription) -> None:
    checked, _ = azure.check(FEATURE, **REGISTRATION)
    with pytest.raises(ProviderError, match=r"cannot create already existing resource .*issues/1722.*template"):
        azure.lifecycle.create(FEATURE, checked, azure.operation)


def test_a_feature_that_does_not_exist_is_refused_with_the_nearest_one(azure: Subscription) -> None:
    with pytest.raises(ArmError, match="Did you mean 'AKSInfinibandSupport'"):
        azure.register("AKSInfiniBandSuport")


def test_a_pool_is_created_over_time_with_progress_and_its_nodes_come_at_the_end(aks: Subscription) -> None:
    began = aks.clock.now
    aks.messages.texts.clear()
    _, outputs = aks.pool()
    assert aks.clock.now - began == pytest.approx(aks.facts.duration("agentPool", "create"), abs=0.2)
    assert aks.messages.texts[0] == "Creating (0 s)"
    assert outputs["provisioningState"] == "Succeeded"


def test_while_an_operation_runs_others_see_it_and_are_refused(aks: Subscription) -> None:
    kind = KINDS[POOL]
    inputs = pool_inputs()
    names = {name: inputs.pop(name) for name in kind.parameters}
    pool = aks.arm.put(kind, names, inputs)
    found = aks.arm.get(pool)
    assert found is not None
    assert found["provisioningState"] == "Creating"
    assert len(aks.node_names()) == 2
    with pytest.raises(ArmError) as caught:
        aks.arm.put(kind, names, inputs)
    assert (caught.value.status, caught.value.code) == (409, "OperationNotAllowed")
    cluster = pool.rpartition("/agentPools/")[0]
    with pytest.raises(ArmError, match="in progress create operation"):
        aks.delete(CLUSTER, cluster)
    aks.clock.sleep(60)
    # No caller waited; the next one finds the operation done.
    assert provisioning_state(aks, pool) == "Succeeded"
    assert len(aks.node_names()) == 4


def test_throttling_is_waited_out_within_bounds(azure: Subscription) -> None:
    azure.group()
    azure.fault("*registries", faults.THROTTLE, 3)
    began = azure.clock.now
    registry(azure)
    assert azure.clock.now - began == pytest.approx(3 * azure.facts.retry_after)
    assert any("throttled; attempt 4 of 4" in text for text in azure.messages.texts)
    azure.fault("images2", faults.THROTTLE, 4)
    with pytest.raises(ArmError) as caught:
        registry(azure, registryName="images2")
    assert (caught.value.status, caught.value.code) == (429, "TooManyRequests")


def test_a_service_that_fails_is_asked_again(azure: Subscription) -> None:
    azure.group()
    azure.fault("*registries", faults.UNAVAILABLE, 3)
    registry(azure)
    assert any("answered 503; attempt 4 of 4" in text for text in azure.messages.texts)


def test_a_lost_answer_leaves_the_accepted_resource_as_an_orphan(aks: Subscription) -> None:
    checked, _ = aks.check(POOL, **pool_inputs())
    aks.fault("*agentPools", faults.TIMEOUT, 4)
    with pytest.raises(ArmError, match="GatewayTimeout") as caught:
        aks.lifecycle.create(POOL, checked, aks.operation_on("urn:pulumi:s::p::t::ndv5"))
    assert caught.value.status == 504
    aks.clock.sleep(600)
    (orphan,) = [each for urn, each in aks.lifecycle.orphans().items() if urn.endswith("::ndv5")]
    assert orphan.outputs["provisioningState"] == "Succeeded"


def test_a_conflict_is_reported_and_the_next_try_succeeds(azure: Subscription) -> None:
    azure.group()
    azure.fault("*:Registry", faults.CONFLICT, 1)
    with pytest.raises(ArmError) as caught:
        registry(azure)
    assert caught.value.status == 409
    assert azure.store.read().faults == []
    registry(azure)


def test_an_operation_that_fails_leaves_a_failed_resource_that_an_update_repairs(aks: Subscription) -> None:
    aks.fault("ndv5", faults.FAILED, 1)
    with pytest.raises(PartialError, match='Code="InternalOperationError"') as caught:
        aks.pool()
    pool = caught.value.resource_id
    assert provisioning_state(aks, pool) == "Failed"
    assert len(aks.node_names()) == 2
    checked, _ = aks.check(POOL, **pool_inputs())
    with pytest.raises(PartialError, match="provisioningState Failed"):
        aks.lifecycle.read(POOL, pool, aks.arm.get(pool) or {}, checked)
    assert aks.update(POOL, pool, **pool_inputs())["provisioningState"] == "Succeeded"
    assert len(aks.node_names()) == 4


def test_a_registration_can_be_stuck_until_the_faults_are_cleared(azure: Subscription) -> None:
    azure.fault("AKSInfinibandSupport", faults.STUCK, 1)
    azure.register()
    azure.clock.sleep(10_000)
    assert state_of_feature(azure) == "Registering"
    azure.clear_faults()
    assert state_of_feature(azure) == "Registered"


def test_an_operation_can_be_stuck_until_the_faults_are_cleared(aks: Subscription) -> None:
    pool, _ = aks.pool()
    aks.fault("ndv5", faults.STUCK, 1)
    aks.arm.delete(KINDS[POOL], pool)
    aks.clock.sleep(10_000)
    assert provisioning_state(aks, pool) == "Deleting"
    aks.clear_faults()
    assert aks.arm.get(pool) is None


def test_a_failed_registration_is_started_again_by_the_next_update(azure: Subscription) -> None:
    azure.fault("AKSInfinibandSupport", faults.FAILED, 1)
    deployment = azure.register()
    azure.clock.sleep(60)
    assert state_of_feature(azure) == "NotRegistered"
    (record,) = azure.arm.state().of_type("Microsoft.Resources/deployments")
    inputs, _ = azure.check(DEPLOYMENT, **record.inputs)
    azure.lifecycle.update(DEPLOYMENT, deployment, inputs, azure.operation)
    azure.clock.sleep(60)
    assert state_of_feature(azure) == "Registered"


@pytest.mark.parametrize(("wanted", "code"), [("ndv5", 0), ("other", 1)])
def test_a_pool_is_scaled_from_the_command_line(aks: Subscription, tmp_path: Path, wanted: str, code: int) -> None:
    aks.pool()
    with patch("emulator.azure.__main__.subscription", lambda paths: aks.arm):
        assert main(["scale", "--state", str(tmp_path), "--pool", wanted, "--count", "3"]) == code
    assert len(aks.node_names()) == (5 if code == 0 else 4)


def test_a_machine_is_removed_from_the_command_line_and_the_next_update_creates_another(
    aks: Subscription, tmp_path: Path
) -> None:
    pool, _ = aks.pool(count=2)
    names = [name for name in aks.node_names() if "ndv5" in name]
    with patch("emulator.azure.__main__.subscription", lambda paths: aks.arm):
        assert main(["remove", "--state", str(tmp_path), "--node", names[0]]) == 0
        assert main(["remove", "--state", str(tmp_path), "--node", names[0]]) == 1
    assert [name for name in aks.node_names() if "ndv5" in name] == names[1:]
    assert aks.arm.get(pool)["count"] == 1
    aks.update(POOL, pool, **pool_inputs(count=2))
    assert [name[-1] for name in aks.node_names() if "ndv5" in name] == ["1", "2"]


def test_an_unknown_fault_is_refused(azure: Subscription) -> None:
    with (
        azure.arm.edit() as state,
        pytest.raises(ValueError, match="Use one of throttle, conflict, failed, unavailable, timeout, stuck"),
    ):
        faults.add(state, "*", "explode", 1)


def test_a_cancelled_wait_records_the_resource_and_the_operation_continues(
    aks: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, _ = aks.check(POOL, **pool_inputs())
    operation = aks.operation
    sleep = operation.sleep

    def cancel(seconds: float) -> None:
        operation.cancel()
        sleep(seconds)

    monkeypatch.setattr(operation, "sleep", cancel)
    with pytest.raises(PartialError, match="cancelled") as caught:
        aks.lifecycle.create(POOL, checked, operation)
    aks.clock.sleep(60)
    assert provisioning_state(aks, caught.value.resource_id) == "Succeeded"


def test_the_state_is_private_survives_the_process_and_an_error_does_not_change_it(
    aks: Subscription, tmp_path: Path
) -> None:
    file = tmp_path / "subscription.json"
    assert file.stat().st_mode & 0o777 == 0o600
    before = json.loads(file.read_text())
    with pytest.raises(ArmError):
        aks.pool(count=9)
    assert json.loads(file.read_text()) == before
    other = aks.again(tmp_path)
    pool, _ = other.pool()
    assert aks.arm.get(pool) == other.arm.get(pool)


def refreshed(azure: Subscription, token: str, resource_id: str, recorded: dict[str, object], **inputs: object) -> dict:
    """Return the changes of an update after a refresh: path -> kind."""
    checked, _ = azure.check(token, **inputs)
    found = azure.lifecycle.read(token, resource_id, recorded, checked)
    return {path: each.kind for path, each in azure.lifecycle.diff(token, found.inputs, checked, []).items()}


def test_a_refresh_finds_no_drift_in_azures_defaults(aks: Subscription) -> None:
    pool, recorded = aks.pool()
    assert refreshed(aks, POOL, pool, recorded, **pool_inputs()) == {}


def test_a_refresh_finds_only_the_changed_values(aks: Subscription) -> None:
    pool, recorded = aks.pool(availabilityZones=["1", "3"])
    with aks.arm.edit() as state:
        record = state.get(pool)
        assert record is not None
        record.properties |= {"count": 3, "availabilityZones": ["3", "1"], "nodeLabels": {"owner": "somebody"}}
    found = refreshed(aks, POOL, pool, recorded, **pool_inputs(availabilityZones=["1", "3"]))
    assert found == {"count": "UPDATE", "nodeLabels": "DELETE"}


def test_a_separate_pool_is_in_the_clusters_profiles(aks: Subscription) -> None:
    cluster = aks.arm.state().of_type("Microsoft.ContainerService/managedClusters")[0].id
    recorded = aks.arm.get(cluster) or {}
    assert [pool["name"] for pool in recorded["agentPoolProfiles"]] == ["system"]
    aks.pool()
    found = refreshed(aks, CLUSTER, cluster, recorded, **cluster_inputs())
    assert found == {"agentPoolProfiles[1]": "DELETE"}


def test_a_resource_that_was_deleted_is_gone_after_a_refresh(azure: Subscription) -> None:
    azure.group()
    created, outputs = registry(azure)
    azure.delete(REGISTRY, created)
    assert azure.lifecycle.read(REGISTRY, created, outputs, {"registryName": "images1"}) is None


def test_a_resource_is_imported_with_the_inputs_that_would_create_it(azure: Subscription) -> None:
    azure.group()
    created, _ = registry(azure, adminUserEnabled=True)
    found = azure.lifecycle.read(REGISTRY, created, {}, {})
    assert found.inputs["adminUserEnabled"] is True
    assert (found.inputs["resourceGroupName"], found.inputs["registryName"]) == ("rg", "images1")
    assert "loginServer" not in found.inputs


def test_a_deleted_group_deletes_its_resources(aks: Subscription) -> None:
    registry(aks)
    group = f"/subscriptions/{aks.facts.subscription_id}/resourceGroups/rg"
    aks.delete(GROUP, group)
    assert [each.name for each in aks.arm.state().resources.values()] == ["AKSInfinibandSupport", "feature"]
    assert aks.cluster.emptied == 1


def test_two_processes_at_once_keep_all_resources(azure: Subscription, tmp_path: Path) -> None:
    azure.group()
    processes = [azure.again(tmp_path) for _ in range(3)]

    def create(process: Subscription, index: int) -> None:
        process.create(IDENTITY, resourceGroupName="rg", resourceName=f"identity-{index}", location="eastus")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(create, processes * 4, range(12)))
    names = {each.name for each in azure.arm.state().of_type("Microsoft.ManagedIdentity/userAssignedIdentities")}
    assert names == {f"identity-{index}" for index in range(12)}


def test_a_recreated_identity_has_other_ids(azure: Subscription) -> None:
    """Entra gives a recreated identity other ids, even under the same name. An update keeps them."""
    given = {"resourceGroupName": azure.group().rpartition("/")[2], "resourceName": "in-blue", "location": "eastus"}
    resource_id, first = azure.create(IDENTITY, **given)
    updated = azure.update(IDENTITY, resource_id, **given, tags={"team": "blue"})
    azure.delete(IDENTITY, resource_id)
    _, second = azure.create(IDENTITY, **given)
    for key in ("clientId", "principalId"):
        assert updated[key] == first[key] != second[key]


def test_a_cluster_uses_the_old_identity_until_it_is_updated(azure: Subscription) -> None:
    azure.group()
    given = {"resourceGroupName": "rg", "resourceName": "control", "location": "eastus"}
    identity, before = azure.create(IDENTITY, **given)
    assigned = {"type": "UserAssigned", "userAssignedIdentities": [identity]}
    cluster, _ = azure.managed_cluster(identity=assigned)
    azure.delete(IDENTITY, identity)
    again, after = azure.create(IDENTITY, **given)
    assert again == identity
    assert after["principalId"] != before["principalId"]

    def principal() -> str:
        found = azure.arm.get(cluster)
        assert found is not None
        return str(found["identity"]["userAssignedIdentities"][identity]["principalId"])

    assert principal() == before["principalId"]
    azure.update(CLUSTER, cluster, **cluster_inputs(identity=assigned, tags={"principal": after["principalId"]}))
    assert principal() == after["principalId"]
