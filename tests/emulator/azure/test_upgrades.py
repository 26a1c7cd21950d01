"""Upgrades of nodes: AKS refuses them because of budgets, and fails if a node cannot be drained."""

import re
from typing import Any

import pytest

from emulator.azure.errors import ArmError
from emulator.plugin.errors import ProviderError
from tests.emulator.azure.subscription import CLUSTER, POOL, Subscription, cluster_inputs, pool_inputs, system_pool


def budget(expected: int = 2, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "blue", "name": "gang"}, "spec": spec, "status": {"expectedPods": expected}}


@pytest.fixture
def upgradable(aks: Subscription) -> Subscription:
    """Return a cluster of 1.35 whose pool with two GPU nodes has 1.34."""
    aks.pool(orchestratorVersion="1.34")
    aks.cluster.drained.clear()
    return aks


def upgrade(aks: Subscription) -> str:
    """Upgrade the Kubernetes version of the pool. Return the code of AKS's error, or an empty text."""
    pool = next(each for each in aks.arm.state().resources.values() if each.name == "ndv5")
    try:
        aks.update(POOL, pool.id, **pool_inputs(orchestratorVersion="1.35"))
    except ProviderError as error:
        return re.findall('Code="(.+?)"', str(error))[0]
    return ""


def states(aks: Subscription) -> dict[str, str]:
    found = aks.arm.state().resources.values()
    return {each.name: each.properties["provisioningState"] for each in found if each.name in ("aks", "ndv5")}


FINE = {"aks": "Succeeded", "ndv5": "Succeeded"}


def test_an_upgrade_drains_one_node_after_the_other(upgradable: Subscription) -> None:
    assert upgrade(upgradable) == ""
    assert upgradable.cluster.drained == [name for name in upgradable.node_names() if "ndv5" in name]
    upgrade(upgradable)
    assert len(upgradable.cluster.drained) == 2, "the same version again is not an upgrade"


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"minAvailable": 2}, "UnsatisfiablePDB"),
        ({"minAvailable": "100%"}, "UnsatisfiablePDB"),
        ({"minAvailable": 1, "expected": 0}, "UnsatisfiablePDB"),
        ({"maxUnavailable": 0}, "UnsatisfiablePDB"),
        ({"minAvailable": 1}, ""),
        ({"maxUnavailable": 1}, ""),
    ],
)
def test_a_budget_that_allows_no_disruption_blocks_every_upgrade(
    upgradable: Subscription, spec: dict[str, Any], code: str
) -> None:
    upgradable.cluster.budgets = [budget(**spec)]
    assert upgrade(upgradable) == code
    assert states(upgradable) == FINE
    assert bool(upgradable.cluster.drained) == (not code)


def test_an_upgrade_of_the_control_plane_is_refused_too(azure: Subscription) -> None:
    azure.group()
    pools = [system_pool()]
    cluster, _ = azure.managed_cluster(kubernetesVersion="1.34", agentPoolProfiles=pools)
    azure.cluster.budgets = [budget(maxUnavailable=0)]
    with pytest.raises(ArmError, match="PDB blue/gang has maxUnavailable == 0"):
        azure.update(CLUSTER, cluster, **cluster_inputs(kubernetesVersion="1.35", agentPoolProfiles=pools))
    azure.update(CLUSTER, cluster, **cluster_inputs(kubernetesVersion="1.34", tags={"a": "b"}, agentPoolProfiles=pools))


def test_a_node_that_cannot_be_drained_leaves_pool_and_cluster_failed(upgradable: Subscription) -> None:
    first, second = [name for name in upgradable.node_names() if "ndv5" in name]
    upgradable.cluster.blocked = second
    assert upgrade(upgradable) == "UpgradeFailed"
    assert upgradable.cluster.drained == [first]
    assert states(upgradable) == {"aks": "Failed", "ndv5": "Failed"}
    upgradable.cluster.blocked = ""
    assert upgrade(upgradable) == ""
    assert states(upgradable) == FINE


def test_a_node_image_drains_the_nodes_of_its_pool(upgradable: Subscription) -> None:
    upgradable.arm.upgrade_images("system")
    assert upgradable.cluster.drained == []
    upgradable.arm.upgrade_images("ndv5")
    assert len(upgradable.cluster.drained) == 2
    upgradable.cluster.blocked = upgradable.cluster.drained[0]
    with pytest.raises(ArmError, match="Too Many Requests"):
        upgradable.arm.upgrade_images()
    assert states(upgradable) == {"aks": "Failed", "ndv5": "Failed"}
