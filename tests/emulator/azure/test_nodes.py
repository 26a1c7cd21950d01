"""The nodes of a pool, and how the cluster follows them."""

import json

from emulator.azure.local_cluster import APPLIED, changes, document
from emulator.azure.overview import tables
from tests.emulator.azure.subscription import CLUSTER, POOL, Subscription, pool_inputs, system_pool


def gpu_nodes(azure: Subscription) -> list[str]:
    return [name[-10:] for name in azure.node_names() if "-ndv5-" in name]


def test_a_pool_is_scaled_up_and_down_by_its_highest_ids(aks: Subscription) -> None:
    pool, _ = aks.pool(count=2)
    assert gpu_nodes(aks) == ["vmss000000", "vmss000001"]
    aks.update(POOL, pool, **pool_inputs(count=4))
    assert gpu_nodes(aks) == ["vmss000000", "vmss000001", "vmss000002", "vmss000003"]
    aks.update(POOL, pool, **pool_inputs(count=1))
    assert gpu_nodes(aks) == ["vmss000000"]
    # A scale set does not reuse an id.
    aks.update(POOL, pool, **pool_inputs(count=2))
    assert gpu_nodes(aks) == ["vmss000000", "vmss000004"]
    aks.update(POOL, pool, **pool_inputs(count=0))
    assert gpu_nodes(aks) == []
    aks.delete(POOL, pool)
    assert "ndv5" not in tables(aks.arm.state())


def test_a_gpu_node_has_the_labels_the_taint_and_the_devices_of_its_machine(aks: Subscription) -> None:
    aks.pool(nodeLabels={"local-nvme-scratch": "true"}, availabilityZones=["3"])
    node = aks.node(aks.node_names()[-1])
    expected = {
        "kubernetes.azure.com/agentpool": "ndv5",
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/accelerator": "nvidia",
        "kubernetes.azure.com/cluster": "rg-nodes",
        "kubernetes.azure.com/os-sku": "Ubuntu",
        "node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5",
        "topology.kubernetes.io/region": "eastus",
        "topology.kubernetes.io/zone": "eastus-3",
        "local-nvme-scratch": "true",
    }
    assert expected.items() <= node.labels.items()
    assert [dict(taint) for taint in node.taints] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    ]
    assert node.annotations == {
        "hardware.emulator/gpus": "8",
        "hardware.emulator/gpu-product": "NVIDIA-H100-80GB-HBM3",
        "hardware.emulator/infiniband": "8",
        "hardware.emulator/nvme": "8",
    }
    assert node.amounts == {"cpu": "96", "memory": "1900Gi", "pods": "250", "ephemeral-storage": "128Gi"}
    assert (node.allocatable["cpu"], node.allocatable["memory"]) == ("94940m", "1987260359Ki")
    assert node.provider_id.endswith(f"/virtualMachineScaleSets/{node.name[:-6]}/virtualMachines/1")


def test_infiniband_requires_a_feature_that_was_registered_and_propagated_first(azure: Subscription) -> None:
    azure.group()
    azure.managed_cluster()
    azure.pool()
    azure.register()
    azure.clock.sleep(60)
    azure.pool(agentPoolName="early", count=1)
    azure.propagate()
    azure.pool(agentPoolName="late", count=1)
    with_infiniband = {
        node.name.split("-")[1]: "hardware.emulator/infiniband" in node.annotations for node in azure.cluster.nodes
    }
    assert with_infiniband == {"system": False, "ndv5": False, "early": False, "late": True}


def test_a_driver_of_aks_is_in_an_annotation_of_the_node(aks: Subscription) -> None:
    aks.pool(gpuProfile=None, count=1)
    assert aks.node(aks.node_names()[-1]).annotations["hardware.emulator/driver"] == "aks"


def test_the_first_system_node_is_the_local_one(aks: Subscription) -> None:
    assert [node.first_of_system for node in aks.cluster.nodes] == [True, False]
    aks.pool(agentPoolName="second", mode="System", vmSize="Standard_D8s_v5", count=1, gpuProfile=None)
    assert [node.first_of_system for node in aks.cluster.nodes] == [True, False, False]


def test_a_stopped_pool_has_no_nodes(aks: Subscription) -> None:
    pool, _ = aks.pool()
    aks.update(POOL, pool, **pool_inputs(powerState={"code": "Stopped"}))
    assert gpu_nodes(aks) == []


def test_a_deleted_cluster_empties_the_local_one(aks: Subscription) -> None:
    aks.pool()
    cluster = aks.arm.state().of_type("Microsoft.ContainerService/managedClusters")[0].id
    aks.delete(CLUSTER, cluster)
    assert aks.cluster.emptied == 1
    assert [each.name for each in aks.arm.state().resources.values()] == ["AKSInfinibandSupport", "feature", "rg"]


def test_a_simulated_system_node_rejects_pods_with_programs(azure: Subscription) -> None:
    azure.group()
    azure.managed_cluster(agentPoolProfiles=[system_pool(nodeTaints=["CriticalAddonsOnly=true:NoSchedule"])])
    found = document("n", azure.cluster.nodes[1])
    assert [taint["key"] for taint in found["spec"]["taints"]] == ["CriticalAddonsOnly", "kwok.x-k8s.io/node"]
    assert found["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "n"
    assert found["status"]["capacity"]["cpu"] == "4"


def live(labels: dict[str, str], taints: list[dict[str, str]], applied: dict[str, object]) -> dict[str, object]:
    metadata = {"name": "n", "labels": labels, "annotations": {APPLIED: json.dumps(applied), "other": "kept"}}
    return {"metadata": metadata, "spec": {"taints": taints}}


def test_a_node_follows_its_pool_and_keeps_labels_and_taints_of_others() -> None:
    gone = {"key": "old", "value": "1", "effect": "NoSchedule"}
    others = {"key": "health", "value": "bad", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    new = {"key": "new", "value": "1", "effect": "NoSchedule"}
    found = live(
        {"a": "1", "b": "2", "theirs": "x"},
        [gone, others],
        {"labels": ["a", "b"], "taints": [gone], "annotations": []},
    )
    patch = changes(found, {"a": "3"}, [new], {})
    assert patch["metadata"]["labels"] == {"a": "3", "b": None}
    assert patch["spec"]["taints"] == [new, others]
    assert "other" not in patch["metadata"]["annotations"]


def test_a_node_that_matches_its_pool_is_not_changed() -> None:
    found = live({"a": "1", "theirs": "x"}, [], {"annotations": [], "labels": ["a"], "taints": []})
    assert changes(found, {"a": "1"}, [], {}) == {}


def test_a_node_that_leaves_its_pool_loses_the_pools_marks() -> None:
    taint = {"key": "t", "value": "1", "effect": "NoSchedule"}
    found = live({"a": "1"}, [taint], {"labels": ["a"], "taints": [taint], "annotations": []})
    patch = changes(found, {}, [], {})
    assert patch == {"metadata": {"labels": {"a": None}, "annotations": {APPLIED: None}}, "spec": {"taints": []}}
