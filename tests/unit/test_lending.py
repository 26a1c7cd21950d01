"""What queues may lend with the nodes' resources: exact limits for each kind of lost node."""

import json
from dataclasses import replace
from typing import Any

import pytest

from components import names
from components.kubernetes.node_pool import GPU_TOLERATION, NodePool, NodeShape
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.nodes.machines import H100_SXM5
from components.tenancy.lending import DECLARED, Node, NodeRules, Queue, amount, limits, quantity, tolerates, usable
from components.tenancy.slack import SlackControllerArgs, program

GPU = "nvidia.com/gpu"
HEALTH = "autopilot.ibm.com/gpuhealth"
NODE = {"cpu": "224", "memory": "2T", GPU: "8"}
QUOTA = {"cpu": "224", "memory": "2T", GPU: "8", "pods": "100"}
FLAVOR = "default-flavor"
SLACK = "slack-cluster-queue"
POOL = {"pool": "ours"}
NEW_TAINT = {"key": "example.org/maintenance", "effect": "NoSchedule"}


def rules(pool: NodePool | None = None) -> NodeRules:
    """The rules that the component mounts."""
    gpus = NodeGroup(node_selector=POOL, tolerations=[GPU_TOLERATION])
    whole = replace(pool or NodePool(count=3, shape=H100_SXM5.shape()), nodes=gpus)
    args = SlackControllerArgs(queue=SLACK, teams=[], image="python", pools=[whole])
    (only,) = json.loads(program(args).data()["settings.json"])["pools"]
    return NodeRules.read(only)


def node(
    *,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    cordoned: bool = False,
    ready: str | None = "True",
    allocatable: dict[str, str] | None = None,
    capacity: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A node of the pool, of 224 cores, 2 TB and 8 GPUs, as the API server has it."""
    spec: dict[str, Any] = {"unschedulable": True} if cordoned else {}
    return {
        "metadata": {"name": "n", "labels": {**POOL, **(labels or {})}},
        "spec": {**spec, "taints": taints},
        "status": {
            "allocatable": {**NODE, "pods": "110", **(allocatable or {})},
            "capacity": {**NODE, "pods": "110", **(capacity or {})},
            "conditions": [{"type": "Ready", "status": ready}] if ready else None,
        },
    }


def queue(name: str, *, held: int = 0, waits: int = 0, lends: str | None = None, **quota: str) -> Queue:
    """A queue of 8 GPUs, or another number. Its jobs hold some of them."""
    entries = [{"name": key, "nominalQuota": value} for key, value in {**QUOTA, **quota}.items()]
    return Queue.read(
        {
            "metadata": {
                "name": name,
                "resourceVersion": "1",
                **({"annotations": {DECLARED: json.dumps({GPU: lends})}} if lends else {}),
            },
            "spec": {
                "cohort": "default-cohort",
                "resourceGroups": [{"flavors": [{"name": FLAVOR, "resources": entries}]}],
            },
            "status": {
                "pendingWorkloads": waits,
                "flavorsReservation": [
                    {"name": FLAVOR, "resources": [{"name": GPU, "total": str(held)}]},
                    {"name": "other", "resources": [{"name": GPU, "total": "99"}]},
                ],
            },
        },
        FLAVOR,
    )


def read(*items: dict[str, Any], by: NodeRules | None = None) -> list[Node]:
    states = [Node.read(item, by or rules()) for item in items]
    return [state.after(None, 0) for state in states if state is not None]


def gpus(nodes: list[Node], *queues: Queue, by: NodeRules | None = None) -> dict[str, int]:
    """Return how many GPUs each queue lends, the slack queue first."""
    slack = queue(SLACK)
    wanted = limits([slack, *queues], slack, usable(nodes, by or rules()))
    return {name.removesuffix("-cluster-queue"): amounts[GPU] // 1000 for name, amounts in wanted.items()}


BLUE, RED = queue("blue"), queue("red")
AMOUNTS = ("nominal", "declared")
HEALTHY = node()


@pytest.mark.parametrize(
    ("item", "slack"),
    [
        pytest.param(node(), 8, id="nothing lost"),
        pytest.param(node(cordoned=True), 0, id="cordoned"),
        pytest.param(node(ready="False"), 0, id="not ready"),
        pytest.param(node(ready="Unknown"), 0, id="unreachable"),
        pytest.param(node(ready=None), 0, id="nobody has said that it is ready"),
        pytest.param(node(taints=[NEW_TAINT]), 0, id="a taint that teams do not tolerate"),
        pytest.param(node(taints=[{**NEW_TAINT, "effect": "NoExecute"}]), 0, id="one that ends pods"),
        pytest.param(node(taints=[{**NEW_TAINT, "effect": "PreferNoSchedule"}]), 8, id="a taint that keeps nobody off"),
        pytest.param(node(taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}]), 8, id="the GPU taint"),
        pytest.param(node(labels={HEALTH: "EVICT"}), 0, id="EVICT"),
        pytest.param(node(labels={HEALTH: "ERR"}), 0, id="ERR"),
        pytest.param(node(labels={HEALTH: "TESTING"}), 0, id="TESTING"),
        pytest.param(node(labels={HEALTH: "WARN"}), 8, id="WARN"),
        pytest.param(node(allocatable={GPU: "7"}), 7, id="lower allocatable"),
        pytest.param(node(allocatable={GPU: "0"}), 0, id="a lost device plugin"),
        pytest.param(
            node(allocatable={GPU: "0"}, capacity={GPU: "0"}),
            0,
            id="a node that has forgotten its GPUs",
        ),
        pytest.param({"metadata": {"name": "n"}, "spec": None, "status": None}, 0, id="a null status"),
    ],
)
def test_what_the_slack_queue_lends_when_one_of_three_nodes_is(item: dict[str, Any], slack: int) -> None:
    assert gpus(read(HEALTHY, HEALTHY, item), BLUE, RED) == {"slack": slack, "blue": 8, "red": 8}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({}, False),
        ({"operator": "Exists"}, True),
        ({"key": "lab", "value": "x"}, True),
        ({"key": "lab", "value": "y"}, False),
        ({"key": "lab"}, False),
        ({"key": "lab", "value": "x", "effect": "NoSchedule"}, True),
        ({"key": "lab", "value": "x", "effect": "NoExecute"}, False),
        ({"key": "lab", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_toleration_needs_the_key_the_value_and_the_effect_of_a_taint(
    toleration: dict[str, str], tolerated: bool
) -> None:
    assert tolerates([toleration], {"key": "lab", "value": "x", "effect": "NoSchedule"}) is tolerated


def test_a_toleration_and_a_taint_without_a_value_match() -> None:
    assert tolerates([{"key": "lab"}], {"key": "lab", "effect": "NoSchedule"})


def test_a_deleted_node_is_lost() -> None:
    assert gpus(read(HEALTHY, HEALTHY), BLUE, RED) == {"slack": 0, "blue": 8, "red": 8}


def test_other_resources_go_with_their_node_and_pods_do_not() -> None:
    slack = queue(SLACK)
    wanted = limits([slack, BLUE, RED], slack, usable(read(HEALTHY, HEALTHY, node(cordoned=True)), rules()))
    assert {name: quantity(value) for name, value in wanted[SLACK].items()} == {
        "cpu": "0",
        "memory": "0",
        GPU: "0",
        "pods": "100",
    }


def test_a_part_of_a_core_is_not_lent() -> None:
    slack = queue(SLACK)
    nodes = read(HEALTHY, HEALTHY, node(allocatable={"cpu": "223500m"}))
    assert quantity(limits([slack, BLUE, RED], slack, usable(nodes, rules()))[SLACK]["cpu"]) == "223"


def test_nodes_beyond_what_is_promised_cover_a_loss() -> None:
    assert gpus(read(HEALTHY, HEALTHY, HEALTHY, node(cordoned=True)), BLUE, RED)["slack"] == 8


def test_nodes_of_another_pool_replace_none_that_is_lost() -> None:
    other = node(labels={"pool": "theirs"})
    assert gpus(read(HEALTHY, HEALTHY, node(cordoned=True), other, other), BLUE, RED)["slack"] == 0
    assert Node.read(node(labels={"pool": "theirs"}, cordoned=True), rules()) is None


def test_where_the_flavor_names_no_labels_nodes_with_gpus_count() -> None:
    anywhere = replace(rules(), labels={})
    assert gpus(read(HEALTHY, HEALTHY, HEALTHY, by=anywhere), BLUE, RED, by=anywhere)["slack"] == 8
    plain = node(cordoned=True, allocatable={GPU: "0"}, capacity={GPU: "0"})
    assert Node.read(plain, anywhere) is None


@pytest.mark.parametrize(
    ("teams", "lent"),
    [
        # Four nodes are promised and two are left: the slack queue's eight are gone, and eight more.
        pytest.param([queue("blue", held=24), queue("red", held=8), queue("green")], [8, 8, 0], id="one is idle"),
        pytest.param([queue("blue", held=8), queue("red"), queue("green")], [8, 4, 4], id="two share what is left"),
        pytest.param([queue("blue"), queue("red"), queue("green")], [6, 5, 5], id="remainders go by name"),
        pytest.param(
            [queue("blue", held=8), queue("red", waits=1), queue("green")], [8, 0, 0], id="who waits is not idle"
        ),
        pytest.param(
            [queue("blue", held=4), queue("red", held=4), queue("green", held=4)], [2, 1, 1], id="each in part"
        ),
        pytest.param(
            [queue("blue", held=8), queue("red", held=8), queue("green", held=8)], [8, 8, 8], id="none is idle"
        ),
        pytest.param([queue("blue"), queue("red", lends="2"), queue("green")], [7, 2, 7], id="declared"),
        pytest.param(
            [queue("blue", lends="1"), queue("red", lends="2"), queue("green", lends="0")], [1, 2, 0], id="fits"
        ),
    ],
)
def test_what_teams_lend_beyond_the_slack(teams: list[Queue], lent: list[int]) -> None:
    result = gpus(read(HEALTHY, HEALTHY), *teams)
    assert [result[team.name] for team in teams] == lent
    assert result["slack"] == 0


def test_what_is_admitted_after_a_loss_fits_the_nodes() -> None:
    """Used own quotas and all that may be lent in addition: never more than the nodes have, for all idle teams."""
    for held in range(9):
        for left in range(3):
            teams = [queue("blue", held=held), queue("red", held=8 - held), queue("green", lends="5"), queue("white")]
            result = gpus(read(*[HEALTHY] * left), *teams)
            idle = {"slack": 8, "blue": 8 - held, "red": held, "green": 8, "white": 8}
            most = 8 + sum(min(result[name], gpus) for name, gpus in idle.items())
            assert most <= max(8 + (result["slack"] == 1), 8 * left)


def test_something_is_always_lent_or_kueue_would_reclaim_nothing() -> None:
    teams = [queue("blue", held=16, lends="0"), queue("red", held=8, lends="0")]
    assert gpus(read(HEALTHY, HEALTHY), *teams) == {"slack": 1, "blue": 0, "red": 0}
    assert gpus([], *teams) == {"slack": 1, "blue": 0, "red": 0}


def test_where_nobody_declares_a_whole_piece_none_is_lent() -> None:
    slack = Queue(**{**vars(queue(SLACK)), "declared": {**queue(SLACK).declared, GPU: 999}})
    teams = [queue("blue", held=8, lends="0"), queue("red", held=8, lends="0")]
    wanted = limits([slack, *teams], slack, usable(read(HEALTHY), rules()))
    assert {name: amounts[GPU] for name, amounts in wanted.items()} == {SLACK: 0, "blue": 0, "red": 0}


def test_a_slack_queue_that_has_none_of_a_resource_has_no_limit_of_it() -> None:
    whole = queue(SLACK)
    without = {name: {key: value for key, value in getattr(whole, name).items() if key != GPU} for name in AMOUNTS}
    slack = Queue(**{**vars(whole), **without})
    wanted = limits([slack, BLUE, RED], slack, usable(read(HEALTHY), rules()))
    assert GPU not in wanted[SLACK]
    assert (wanted["blue"][GPU], wanted["red"][GPU]) == (4000, 4000), "the eight that are left are theirs to lend"


def test_no_team_lends_more_than_it_declares() -> None:
    teams = [queue("blue", lends="4"), RED]
    for left in range(4):
        assert gpus(read(*[HEALTHY] * left), *teams)["blue"] <= 4


def test_nodes_that_an_autoscaler_may_add_are_not_lost() -> None:
    shape = NodeShape(
        instance_type="m", gpu_product="", resources={name: Quantity.parse(value) for name, value in NODE.items()}
    )
    by = rules(NodePool(count=3, minimum=1, shape=shape))
    assert gpus([], BLUE, RED, by=by)["slack"] == 0  # one of them is always there, and now is not
    assert gpus(read(HEALTHY), BLUE, RED, by=by)["slack"] == 8
    assert gpus(read(HEALTHY, node(cordoned=True)), BLUE, RED, by=by)["slack"] == 0


def test_queues_of_another_cohort_have_no_part() -> None:
    slack, other = queue(SLACK), queue("other")
    elsewhere = Queue(**{**vars(other), "cohort": "elsewhere"})
    assert set(limits([slack, elsewhere, BLUE], slack, usable([], rules()))) == {SLACK, "blue"}


class TestANodeThatComesBack:
    """It counts again after ten seconds, and one that joins at once."""

    def states(self, *items: tuple[float, dict[str, Any] | None]) -> Node:
        state: Node | None = None
        for now, item in items:
            following = Node.read(item, rules()) if item is not None else None
            assert following is not None
            state = following.after(state, now)
        assert state is not None
        return state

    def gpus(self, state: Node, now: float) -> tuple[int, float | None]:
        wait = state.settle(now, 10)
        return state.counted[GPU] // 1000, wait

    def test_is_lost_at_once_and_waited_for(self) -> None:
        state = self.states((0, node()), (5, node(cordoned=True)))
        assert self.gpus(state, 5) == (0, None)
        state = self.states((0, node()), (5, node(cordoned=True)), (20, node()))
        assert self.gpus(state, 20) == (0, 10)
        assert self.gpus(state, 29) == (0, 1)
        assert self.gpus(state, 30) == (8, None)

    def test_is_lost_all_the_time_while_it_comes_and_goes(self) -> None:
        cycles = [(15.0 * n, node(cordoned=n % 2 == 1)) for n in range(1, 7)]
        for last in range(2, 7):
            state = self.states((0, node()), *cycles[:last])
            assert self.gpus(state, cycles[last - 1][0] + 9)[0] == 0

    def test_with_one_gpu_less_counts_with_the_others(self) -> None:
        state = self.states((0, node()), (5, node(allocatable={GPU: "7"})))
        assert self.gpus(state, 5) == (7, None)

    def test_joins_at_once(self) -> None:
        """As it boots: first not ready, then without a device plugin."""
        state = self.states((0, node(ready="False")), (5, node(allocatable={GPU: "0"})), (8, node()))
        assert self.gpus(state, 8) == (8, None)


@pytest.mark.parametrize(
    ("reported", "reason"),
    [
        (node(), ""),
        (node(cordoned=True), "cordoned"),
        (node(ready="Unknown"), "not ready"),
        (node(taints=[NEW_TAINT]), "taint example.org/maintenance"),
        (node(labels={HEALTH: "EVICT"}), "health label"),
        (node(allocatable={GPU: "6"}), "fewer GPUs"),
    ],
)
def test_why_a_node_is_lost(reported: dict[str, Any], reason: str) -> None:
    (state,) = read(reported)
    assert state.reason == reason


class TestWhatIsWritten:
    def entry(self, found: Queue, limit: int) -> dict[str, Any]:
        groups = found.with_limits(found.groups, {**found.declared, GPU: limit * 1000})
        return dict(next(item for item in groups[0]["flavors"][0]["resources"] if item["name"] == GPU))

    def test_a_whole_quota_is_no_limit(self) -> None:
        assert self.entry(BLUE, 8) == {"name": GPU, "nominalQuota": "8"}
        assert self.entry(BLUE, 3) == {"name": GPU, "nominalQuota": "8", "lendingLimit": "3"}

    def test_a_declared_limit_is_restored_as_it_was_written(self) -> None:
        assert self.entry(queue("blue", lends="4000m"), 4)["lendingLimit"] == "4000m"
        assert self.entry(queue("blue", lends="8"), 8)["lendingLimit"] == "8"
        assert self.entry(queue("blue", lends="4000m"), 2)["lendingLimit"] == "2"

    def test_a_queue_without_quotas_has_no_limits(self) -> None:
        bare = Queue.read({"metadata": {"name": "q", "resourceVersion": "1"}, "spec": None, "status": None}, FLAVOR)
        assert bare.nominal == {}


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("8", 8000),
        (8, 8000),
        ("500m", 500),
        ("1u", 0),
        ("2T", 2 * 10**15),
        ("1Ki", 1024_000),
        ("12e6", 12 * 10**9),
        ("1E", 10**21),
    ],
)
def test_amounts(text: str | int, thousandths: int) -> None:
    assert amount(text) == thousandths


@pytest.mark.parametrize("text", ["", "8x", "8KB", "8KK", "8mm", "m"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|Invalid literal"):
        amount(text)


def test_quantities_are_exact() -> None:
    assert quantity(8000) == "8"
    assert quantity(223500) == "223500m"


def test_the_counted_resources_are_those_of_the_quotas_without_pods() -> None:
    assert set(rules().resources) == set(names.RESOURCES) - {"pods"}
    assert rules().resources[0] == GPU
