"""A resource that a killed engine did not record is rejected like any existing one, and kept as an orphan."""

from pathlib import Path
from typing import Any

import pytest

from emulator.azure import faults, orphans
from emulator.azure.services import KINDS
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from emulator.plugin.errors import PartialError, ProviderError
from tests.emulator.azure.subscription import GROUP, POOL, Subscription, pool_inputs

URN = "urn:pulumi:aks::mlbatch::azure-native:containerservice:AgentPool::ndv5"


def create(azure: Subscription, urn: str, **changes: Any) -> tuple[str, dict[str, Any]]:
    checked, problems = azure.check(POOL, **pool_inputs(**changes))
    assert problems == []
    return azure.lifecycle.create(POOL, checked, azure.operation_on(urn))


def started(azure: Subscription, urn: str) -> str:
    """Start to create a pool like an engine that is killed at once; return its id."""
    kind, inputs = KINDS[POOL], pool_inputs()
    names = {name: inputs.pop(name) for name in kind.parameters}
    return azure.arm.put(kind, names, inputs, urn)


def test_a_second_create_after_a_killed_engine_is_refused(aks: Subscription) -> None:
    """Azure does not know which program created a resource, and the official provider rejects it."""
    started(aks, URN)
    aks.clock.sleep(60)
    with pytest.raises(ProviderError, match="cannot create already existing resource"):
        create(aks, URN)


@pytest.mark.parametrize("look", ["read", "diff", "update"])
def test_a_resource_that_an_engine_sends_is_not_an_orphan(aks: Subscription, look: str) -> None:
    pool, outputs = create(aks, URN)
    assert aks.lifecycle.orphans()[URN].id == pool
    checked, _ = aks.check(POOL, **pool_inputs())
    if look == "read":
        aks.lifecycle.read(POOL, pool, outputs, checked)
    elif look == "diff":
        aks.lifecycle.diff(POOL, checked, checked, [], pool)
    else:
        aks.lifecycle.update(POOL, pool, checked, aks.operation)
    assert URN not in aks.lifecycle.orphans()


def test_an_orphan_whose_operation_failed_is_created_by_the_next_update(aks: Subscription) -> None:
    aks.fault("*agentPools", faults.FAILED, 1)
    pool = started(aks, URN)
    aks.clock.sleep(600)
    found = aks.lifecycle.orphans()[URN]
    assert (found.id, found.outputs["provisioningState"]) == (pool, "Failed")


def test_a_failed_create_is_an_orphan_until_the_engine_sends_its_id(aks: Subscription) -> None:
    """The error contains the id of the existing resource. An engine killed before it records the id does not know
    it.
    """
    aks.fault("*agentPools", faults.FAILED, 1)
    with pytest.raises(PartialError):
        create(aks, URN)
    assert URN in aks.lifecycle.orphans()


def test_orphans_are_the_resources_that_no_engine_has_sent(tmp_path: Path) -> None:
    paths = Paths.of(state=tmp_path)
    assert orphans(paths) == {}
    azure = Subscription(Layout(paths).azure)
    checked, _ = azure.check(GROUP, resourceGroupName="rg", location="eastus")
    group, outputs = azure.lifecycle.create(GROUP, checked, azure.operation_on(URN))
    found = orphans(paths)[URN]
    assert (found.id, found.inputs, found.outputs) == (group, checked, outputs)
    azure.lifecycle.read(GROUP, group, outputs, checked)
    assert orphans(paths) == {}
