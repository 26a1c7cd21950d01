"""Several node pools: what queues have of each, and what becomes of them on each target."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from components.kubernetes.placement import NodeGroup, union
from components.tenancy.lending import Node, Queue
from components.tenancy.slack_controller import Settings
from stacks.config.errors import SettingsError
from tests.unit import test_aks, test_existing
from tests.unit.configurations import errors_of, partial_of
from tests.unit.test_existing import node
from tests.unit.test_lending import NODE as ALLOCATABLE

GPU = "nvidia.com/gpu"
A100 = "Standard_ND96amsr_A100_v4"
SPOT = {"name": "spot", "count": 3, "instanceType": A100}


def quota(gpus: int, cpu: int = 8) -> dict[str, Any]:
    return {"cpu": cpu, "memory": "100Gi", GPU: gpus}


def simulated(*pools: dict[str, Any], teams: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Two nodes of the first pool with eight GPUs each, and more pools."""
    equal = [{"name": name, "users": [], "share": 1} for name in ("blue", "red")]
    return {
        "target": "simulated",
        "nodes": {"count": 2, "morePools": list(pools)},
        "teams": equal if teams is None else teams,
    }


def two(**second: Any) -> dict[str, Any]:
    """The shipped settings of a cluster that is there, with a second pool."""
    raw = test_existing.shipped()
    raw["cluster"]["pool"]["nodeSelector"] = {"pool": "gpu"}
    raw["cluster"]["morePools"] = [{"name": "spot", "nodeSelector": {"pool": "spot"}, **second}]
    return raw


def on_aks(**second: Any) -> dict[str, Any]:
    more = [{"name": "spot", "vmSize": "Standard_NC96ads_A100_v4", "count": 2, "spot": True, **second}]
    return test_aks.settings(azure__moreGpuPools=more)


def gpus(raw: dict[str, Any]) -> list[dict[str, str]]:
    """Return how many GPUs of each pool each team has, and the slack queue."""
    assert errors_of(raw) == []
    views = partial_of(raw).every_pool
    return [
        {"slack": str((each.slack or {})[GPU]), **{team: str(amounts[GPU]) for team, amounts in each.quotas.items()}}
        for each in views
    ]


class TestQuotas:
    def test_a_share_is_a_part_of_each_pool(self) -> None:
        assert gpus(simulated(SPOT)) == [
            {"slack": "8", "blue": "4", "red": "4"},
            {"slack": "8", "blue": "8", "red": "8"},
        ]

    def test_a_team_with_a_quota_has_nothing_of_a_pool_that_it_does_not_name(self) -> None:
        teams = [{"name": "blue", "users": [], "quota": quota(4)}, {"name": "red", "users": [], "share": 1}]
        assert gpus(simulated(SPOT, teams=teams)) == [
            {"slack": "8", "blue": "4", "red": "4"},
            {"slack": "8", "blue": "0", "red": "16"},
        ]

    def test_a_team_says_what_it_has_of_a_pool(self) -> None:
        own = {"name": "spot", "quota": quota(2), "borrowingLimit": {GPU: 1}, "lendingLimit": {GPU: 0}}
        teams = [
            {"name": "blue", "users": [], "share": 1, "pools": [own]},
            {"name": "red", "users": [], "quota": quota(4), "pools": [{"name": "spot", "share": 3}]},
        ]
        raw = simulated({**SPOT, "slack": quota(6)}, teams=teams)
        assert gpus(raw) == [{"slack": "8", "blue": "4", "red": "4"}, {"slack": "6", "blue": "2", "red": "16"}]
        first, spot = partial_of(raw).every_pool
        assert (first.borrowing_limits["blue"], str(spot.borrowing_limits["blue"][GPU])) == ({}, "1")


class TestUnion:
    def test_one_pool_is_as_it_is(self) -> None:
        group = NodeGroup(node_selector={"pool": "a"})
        assert union([group]) is group

    def test_what_all_have_in_common_selects_and_the_rest_is_a_choice(self) -> None:
        gpu = {"key": GPU, "operator": "Exists"}
        spot = {"key": "spot", "operator": "Exists"}
        first = NodeGroup(node_selector={"gpu": "yes", "pool": "a"}, tolerations=[gpu])
        second = NodeGroup(node_selector={"gpu": "yes", "pool": "b"}, tolerations=[gpu, spot])
        body = union([first, second]).body()
        assert body["nodeSelector"] == {"gpu": "yes"}
        assert body["tolerations"] == [gpu, spot]
        required = body["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert required["nodeSelectorTerms"] == [
            {"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]} for pool in ("a", "b")
        ]

    def test_a_pool_without_labels_of_its_own_makes_all_with_the_common_ones_part(self) -> None:
        first = NodeGroup(node_selector={"gpu": "yes"})
        second = NodeGroup(node_selector={"gpu": "yes", "pool": "b"})
        assert union([first, second]) == NodeGroup(node_selector={"gpu": "yes"}, tolerations=[])


class TestExisting:
    def test_each_pool_is_what_its_nodes_have(self, mirror: Mirror, kubeconfig: Path) -> None:
        spot = tuple(replace(node(name, **{GPU: "4"}), labels={"pool": "spot"}) for name in ("s0", "s1", "s2"))
        stack = test_existing.loaded(two(), mirror, kubeconfig, nodes=(*test_existing.NODES, *spot))
        assert [(pool.name, pool.count) for pool in stack.resolved.pools] == [
            ("default-flavor", len(test_existing.NODES)),
            ("spot", 3),
        ]
        record = test_existing.registered(stack)
        flavor = record.one("ResourceFlavor", "spot").inputs["spec"]
        assert flavor["nodeLabels"] == {"pool": "spot"}
        queue = record.one("ClusterQueue", "blue-cluster-queue").inputs["spec"]
        (group,) = queue["resourceGroups"]
        assert [(each["name"], each["resources"][2]["nominalQuota"]) for each in group["flavors"]] == [
            ("default-flavor", "8"),
            ("spot", "4"),
        ]

    def test_devices_of_the_network_are_looked_for_on_the_nodes_of_their_pool(
        self, mirror: Mirror, kubeconfig: Path
    ) -> None:
        roce = "nvidia.com/roce_gdr"
        first = tuple(node(name, **{roce: "8"}) for name in "ab")
        spot = replace(node("s0"), labels={"pool": "spot"})
        raw = two()
        raw["cluster"]["pool"]["rdma"] = {"resource": roce, "perNode": 8}
        assert test_existing.loaded(raw, mirror, kubeconfig, nodes=(*first, spot)).resolved.fabric.resource == roce
        raw["cluster"]["morePools"][0]["rdma"] = {"resource": roce, "perNode": 8}
        with pytest.raises(
            SettingsError, match=r"morePools\[0\].rdma.perNode.*\n.*offer fewer nvidia.com/roce_gdr: s0"
        ):
            test_existing.loaded(raw, mirror, kubeconfig, nodes=(*first, spot))

    def test_what_the_stack_runs_on_whole_nodes_runs_in_the_first_pool(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = two(count=2, instanceType=A100)
        nccl = {"enabled": True, "tag": "1", "image": "example.org/nccl", "submission": {"team": "blue"}}
        raw["workloads"] = {"nccl": nccl}
        record = test_existing.registered(test_existing.loaded(raw, mirror, kubeconfig))
        (job,) = (item for item in record.of("AppWrapper") if "nccl" in item.object_name)
        text = json.dumps(job.inputs)
        assert '"nodeSelector": {"pool": "gpu"}' in text
        assert "nodeAffinity" not in text

    def test_the_slack_controller_knows_the_nodes_of_each(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = two(count=2, minimum=0, instanceType=A100)
        record = test_existing.registered(test_existing.loaded(raw, mirror, kubeconfig))
        data = record.one("ConfigMap", "slack-controller").inputs["data"]["settings.json"]
        pools = Settings.load(data).pools
        assert [(pool.name, pool.most, pool.labels) for pool in pools] == [
            ("default-flavor", 0, {"pool": "gpu"}),
            ("spot", 2, {"pool": "spot"}),
        ]
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": ALLOCATABLE}
        item = {"metadata": {"name": "n", "labels": {"pool": "spot"}}, "status": status}
        assert Node.read(item, pools[0]) is None
        spot = Node.read(item, pools[1])
        assert spot is not None
        assert spot.pool == "spot"


def test_lending_limits_are_kept_by_flavor() -> None:
    def entries(limit: str | None = None) -> list[dict[str, str]]:
        return [{"name": GPU, "nominalQuota": "8", **({"lendingLimit": limit} if limit else {})}]

    groups = [{"flavors": [{"name": "a", "resources": entries()}, {"name": "b", "resources": entries("3")}]}]
    item = {
        "metadata": {
            "name": "q",
            "resourceVersion": "1",
            "annotations": {"mlbatch/lending-limits": json.dumps([{}, {GPU: "4"}])},
        },
        "spec": {"resourceGroups": groups},
    }
    first, second = (Queue.read(item, flavor) for flavor in "ab")
    assert (first.declared[GPU], second.declared[GPU]) == (8000, 4000)
    changed = second.with_limits(first.with_limits(groups, {GPU: 5000}), {GPU: 4000})
    assert [flavor["resources"] for flavor in changed[0]["flavors"]] == [entries("5"), entries("4")]
    turned = [{"flavors": groups[0]["flavors"][::-1]}]
    moved = Queue.read({**item, "spec": {"resourceGroups": turned}}, "b")
    assert (moved.nominal[GPU], moved.flavor) == (8000, 0), "by name, whatever the order"
    beside = Queue.read({**item, "spec": {"resourceGroups": [{"flavors": [groups[0]["flavors"][0]]}]}}, "b")
    assert beside.with_limits(groups, {}) == groups


class TestAks:
    def test_ports_of_a_later_pool_have_their_operator(self, mirror: Mirror) -> None:
        raw = on_aks(vmSize="Standard_ND96isr_H100_v5", spot=False, count=1)
        raw["azure"]["gpuPool"] = {"vmSize": "Standard_NC96ads_A100_v4", "count": 1}
        assert test_aks.deployed(mirror, raw).of("NicClusterPolicy")

    def test_a_spot_pool_is_bought_as_such_and_its_flavor_tolerates_it(self, mirror: Mirror) -> None:
        record = test_aks.deployed(mirror, on_aks())
        pools = {item.name: item.inputs for item in record.resources if item.type.endswith(":AgentPool")}
        spot, first = pools["spot"], pools["ndv5"]
        assert (spot["scaleSetPriority"], spot["scaleSetEvictionPolicy"], spot["spotMaxPrice"]) == (
            "Spot",
            "Delete",
            -1,
        )
        assert spot["nodeTaints"] == [
            "nvidia.com/gpu=present:NoSchedule",
            "kubernetes.azure.com/scalesetpriority=spot:NoSchedule",
        ]
        assert spot["nodeLabels"]["kubernetes.azure.com/scalesetpriority"] == "spot"
        assert spot["upgradeSettings"] == {"drainTimeoutInMinutes": 30}, "Azure refuses a surge of spot pools"
        assert not {"scaleSetPriority", "spotMaxPrice"} & first.keys()
        flavors = {item.object_name: item.inputs["spec"] for item in record.of("ResourceFlavor")}
        assert flavors["spot"]["nodeLabels"]["kubernetes.azure.com/agentpool"] == "spot"
        assert flavors["default-flavor"]["nodeLabels"]["kubernetes.azure.com/agentpool"] == "ndv5"
        assert "kubernetes.azure.com/scalesetpriority" in {each["key"] for each in flavors["spot"]["tolerations"]}
