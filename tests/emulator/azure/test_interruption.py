"""What an engine created that did not live to record it goes to the same resource of the program, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.azure import faults, orphans
from emulator.azure.services import KINDS
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from emulator.plugin.errors import PartialError, ProviderError
from tests.emulator.azure.subscription import DEPLOYMENT, GROUP, POOL, Subscription, pool_inputs

URN = "urn:pulumi:aks::mlbatch::azure-native:containerservice:AgentPool::ndv5"
OTHER = "urn:pulumi:aks::mlbatch::azure-native:containerservice:AgentPool::other"


def create(azure: Subscription, urn: str, **changes: Any) -> tuple[str, dict[str, Any]]:
    checked, problems = azure.check(POOL, **pool_inputs(**changes))
    assert problems == []
    return azure.lifecycle.create(POOL, checked, azure.operation_on(urn))


def started(azure: Subscription, urn: str) -> str:
    """Begin to create a pool as an engine does that is killed at once; return its id."""
    kind, inputs = KINDS[POOL], pool_inputs()
    names = {name: inputs.pop(name) for name in kind.parameters}
    return azure.arm.put(kind, names, inputs, urn)


def test_the_same_resource_gets_what_was_begun_for_it_and_with_its_own_inputs(aks: Subscription) -> None:
    pool = started(aks, URN)
    assert aks.arm.state().resources[pool.lower()].operation is not None
    found, outputs = create(aks, URN, count=3)
    assert found == pool
    assert (outputs["count"], outputs["provisioningState"]) == (3, "Succeeded")
    assert f"{pool} was created by an interrupted run and is taken over from it" in aks.messages.texts


def test_another_resource_does_not_get_it(aks: Subscription) -> None:
    started(aks, URN)
    aks.clock.sleep(60)
    with pytest.raises(ProviderError, match="cannot create already existing resource"):
        create(aks, OTHER)


def test_one_whose_operation_has_failed_meanwhile_is_sent_anew(aks: Subscription) -> None:
    with aks.arm.edit() as state:
        faults.add(state, "*agentPools", faults.FAILED, 1)
    started(aks, URN)
    _, outputs = create(aks, URN)
    assert outputs["provisioningState"] == "Succeeded"


@pytest.mark.parametrize("look", ["read", "diff", "update"])
def test_what_an_engine_shows_to_know_is_its_own(aks: Subscription, look: str) -> None:
    pool, outputs = create(aks, URN)
    checked, _ = aks.check(POOL, **pool_inputs())
    if look == "read":
        aks.lifecycle.read(POOL, pool, outputs, checked)
    elif look == "diff":
        aks.lifecycle.diff(POOL, checked, checked, [], pool)
    else:
        aks.lifecycle.update(POOL, pool, checked, aks.operation)
    with pytest.raises(ProviderError, match="cannot create already existing resource"):
        create(aks, URN)


def test_a_failed_create_is_known_to_the_engine_only_once_it_says_so(aks: Subscription) -> None:
    """The engine gets the id of what exists with the error; killed before it writes it down, it knows nothing."""
    with aks.arm.edit() as state:
        faults.add(state, "*agentPools", faults.FAILED, 1)
    with pytest.raises(PartialError):
        create(aks, URN)
    assert create(aks, URN)[1]["provisioningState"] == "Succeeded"


def test_the_template_that_registers_the_feature_can_be_taken_over(azure: Subscription) -> None:
    azure.register()
    (deployment,) = [each for each in azure.arm.state().resources.values() if each.token == DEPLOYMENT]
    checked, _ = azure.check(DEPLOYMENT, **deployment_inputs())
    found, _ = azure.lifecycle.create(DEPLOYMENT, checked, azure.operation_on(deployment.creator))
    assert found == deployment.id


def deployment_inputs() -> dict[str, Any]:
    resource = {
        "type": "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations",
        "apiVersion": "2021-07-01",
        "name": "Microsoft.ContainerService/AKSInfinibandSupport",
        "properties": {},
    }
    template = {"mode": "Incremental", "template": {"resources": [resource]}}
    return {"deploymentName": "feature", "location": "eastus", "properties": template}


def test_orphans_is_what_no_engine_has_shown_to_know(tmp_path: Path) -> None:
    paths = Paths.of(state=tmp_path)
    assert orphans(paths) == {}
    azure = Subscription(Layout(paths).azure)
    checked, _ = azure.check(GROUP, resourceGroupName="rg", location="eastus")
    group, outputs = azure.lifecycle.create(GROUP, checked, azure.operation_on(URN))
    found = orphans(paths)[URN]
    assert (found.id, found.inputs, found.outputs) == (group, checked, outputs)
    azure.lifecycle.read(GROUP, group, outputs, checked)
    assert orphans(paths) == {}
