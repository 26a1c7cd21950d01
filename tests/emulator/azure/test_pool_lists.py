"""Changes of pools through their cluster, and through a template."""

from typing import Any

import pytest

from emulator.azure.errors import ArmError
from tests.emulator.azure.subscription import (
    CLUSTER,
    GROUP_DEPLOYMENT,
    Subscription,
    cluster_inputs,
    pool_inputs,
    system_pool,
)

POOL_TYPE = "Microsoft.ContainerService/managedClusters/agentPools"
POOL_PATH = ("resourceGroupName", "resourceName", "agentPoolName")


def code_of(call: Any) -> str:
    with pytest.raises(ArmError) as caught:
        call()
    return caught.value.code


LISTED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no version": ([{}, {}], ""),
    "all versions": ([{"orchestratorVersion": "1.35"}, {"orchestratorVersion": "1.35"}], ""),
    "one version": ([{}, {"orchestratorVersion": "1.35"}], "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged"),
    "another version": (
        [{"orchestratorVersion": "1.35"}, {"orchestratorVersion": "1.34"}],
        "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged",
    ),
    "a new pool": ([{}, {}, {"name": "more"}], "BadRequest"),
    "a pool less": ([{}], "BadRequest"),
}


@pytest.mark.parametrize("case", LISTED)
def test_an_update_of_a_cluster_lists_its_pools_as_they_are(aks: Subscription, case: str) -> None:
    aks.pool(orchestratorVersion="1.35")
    pool = {key: value for key, value in pool_inputs(name="ndv5").items() if key not in POOL_PATH}
    changes, code = LISTED[case]
    cluster = aks.arm.state().of_type("Microsoft.ContainerService/managedClusters")[0].id
    listed = [{**profile, **change} for profile, change in zip([system_pool(), pool, pool], changes, strict=False)]
    call = lambda: aks.update(CLUSTER, cluster, **cluster_inputs(agentPoolProfiles=listed))  # noqa: E731
    if code:
        assert code_of(call) == code
    else:
        call()


def deployed(azure: Subscription, **changes: Any) -> dict[str, Any]:
    """Deploy a template with the system pool, changed, and return the pool."""
    properties = {key: value for key, value in system_pool(**changes).items() if key != "name"}
    resource = {"type": POOL_TYPE, "apiVersion": "2025-09-01", "name": "aks/system", "properties": properties}
    template = {"mode": "Incremental", "template": {"resources": [resource]}}
    made = azure.create(GROUP_DEPLOYMENT, resourceGroupName="rg", deploymentName="system", properties=template)
    pool = azure.arm.get(made[1]["properties"]["outputResources"][0]["id"])
    assert pool is not None
    return pool


def test_a_template_changes_an_existing_pool_in_place(aks: Subscription) -> None:
    assert len(aks.node_names()) == 2
    assert deployed(aks, count=3)["count"] == 3
    assert len(aks.node_names()) == 3


def test_a_template_does_not_change_the_fixed_properties_of_a_pool(aks: Subscription) -> None:
    assert code_of(lambda: deployed(aks, vmSize="Standard_D8s_v5")) == "PropertyChangeNotAllowed"
