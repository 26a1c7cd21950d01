"""Shares of the nodes, as teams' quotas."""

import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from stacks.derived.quotas import empty_shares, slack_quota, team_quotas
from stacks.settings.machines import MACHINES
from stacks.settings.tenancy import QuotaSettings, TeamSettings
from stacks.validation import rules
from tests.unit.configurations import partial_of

GIVEN = QuotaSettings.model_validate({"cpu": "10", "memory": "100Gi", "nvidia.com/gpu": "3"}, strict=False)


def pool(count: int) -> NodePool:
    shape = MACHINES["Standard_ND96isr_H100_v5"].shape(cpu=Quantity.parse(96), memory=Quantity.parse("1900Gi"))
    return NodePool(count=count, shape=shape)


def team(name: str, **amounts: Any) -> TeamSettings:
    return TeamSettings.model_construct(name=name, users=(), **{"quota": None, "share": None, **amounts})


def quota(*teams: TeamSettings, nodes: int, resource: str = names.GPU) -> list[str]:
    found = team_quotas(teams, slack_quota(None, pool(nodes)), pool(nodes))
    return [str(found[team.name][resource]) for team in teams]


@pytest.mark.parametrize(
    ("nodes", "resource", "expected"),
    [
        (1, names.GPU, ["4", "4"]),  # one node: no slack
        (2, names.GPU, ["4", "4"]),  # two: one of them is
        (4, names.GPU, ["12", "12"]),
        (4, names.INFINIBAND, ["12", "12"]),
        (4, names.CPU, ["144", "144"]),
        (4, names.MEMORY, ["2850Gi", "2850Gi"]),
        (0, names.GPU, ["0", "0"]),
    ],
)
def test_equal_shares_follow_the_number_of_nodes(nodes: int, resource: str, expected: list[str]) -> None:
    assert quota(team("blue", share=1), team("red", share=1), nodes=nodes, resource=resource) == expected


@pytest.mark.parametrize(
    ("shares", "nodes", "expected"),
    [
        ({"blue": 3, "red": 1}, 1, ["6", "2"]),
        ({"a": 1, "b": 1, "c": 1}, 1, ["3", "3", "2"]),  # equal remainders: by name
        ({"small": 1, "large": 1000}, 3, ["0", "16"]),
        ({"large": 1000, "small": 1}, 3, ["16", "0"]),
        ({"a": 5, "b": 3, "c": 3}, 3, ["7", "5", "4"]),
        ({"a": 5, "b": 5, "c": 1}, 3, ["7", "7", "2"]),  # the small one is cut the most
    ],
)
def test_what_does_not_divide_goes_to_those_who_are_cut_the_most(
    shares: dict[str, int], nodes: int, expected: list[str]
) -> None:
    assert quota(*(team(name, share=share) for name, share in shares.items()), nodes=nodes) == expected


def drawn(seed: int) -> tuple[list[TeamSettings], int]:
    """Teams with shares, some of them with a quota, and enough nodes for the quota."""
    random = Random(seed)  # noqa: S311 - no secret
    teams = [team(f"t{index}", share=random.randint(1, 1000)) for index in range(random.randint(1, 12))]
    if random.random() < 0.5:
        teams.append(team("given", quota=GIVEN))
    random.shuffle(teams)
    return teams, random.randint(1, 40)


@pytest.mark.parametrize("seed", range(60))
def test_shares_give_away_everything_fairly_and_in_any_order(seed: int) -> None:
    teams, nodes = drawn(seed)
    slack = slack_quota(None, pool(nodes))
    quotas = team_quotas(teams, slack, pool(nodes))
    assert team_quotas(sorted(teams, key=lambda each: each.name), slack, pool(nodes)) == quotas
    assert team_quotas(teams[::-1], slack, pool(nodes)) == quotas
    sharing = [each for each in teams if each.share]
    total = sum(each.share or 0 for each in sharing)
    for resource in names.RESOURCES:
        piece = Quantity.parse("1Gi" if resource == names.MEMORY else 1)
        given = sum((quotas[each.name][resource] for each in teams if each.quota), start=slack[resource])
        left = (pool(nodes).resources[resource] - given) // piece
        parts = {each.name: quotas[each.name][resource] // piece for each in sharing}
        assert sum(parts.values()) == left
        for each in sharing:
            assert abs(parts[each.name] * total - left * (each.share or 0)) < total  # less than a piece away
            assert all(parts[each.name] >= parts[other.name] for other in sharing if other.share < each.share)


def empty(*teams: TeamSettings, nodes: int) -> list[tuple[str, int, int | None]]:
    found = empty_shares(teams, slack_quota(None, pool(nodes)), pool(nodes))
    return [(each.team, each.left, each.enough) for each in found]


def test_a_share_without_gpus_is_found_with_the_share_that_gives_one() -> None:
    small, large = team("small", share=1), team("large", share=1000)
    ((name, left, enough),) = empty(small, large, nodes=3)
    assert (name, left) == ("small", 16)
    assert enough is not None
    assert quota(team("small", share=enough), large, nodes=3) == ["1", "15"]
    assert quota(team("small", share=enough - 1), large, nodes=3) == ["0", "16"]


def test_a_share_can_be_empty_whatever_it_is() -> None:
    all_of_it = QuotaSettings.model_validate({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}, strict=False)
    assert empty(team("given", quota=all_of_it), team("rest", share=1), nodes=1) == [("rest", 0, None)]
    crowd = [team(f"t{index:02}", share=1000) for index in range(12)]
    assert empty(*crowd, nodes=1) == [(f"t{index:02}", 8, None) for index in range(8, 12)]


def test_nodes_without_gpus_leave_no_share_to_speak_of() -> None:
    assert empty(team("blue", share=1), nodes=0) == []
    assert empty(team("blue", share=1), team("red", share=1), nodes=1) == []


def test_given_quotas_come_first_and_shares_divide_the_rest() -> None:
    assert quota(team("given", quota=GIVEN), team("rest", share=1), nodes=1) == ["3", "5"]


def test_nothing_left_is_nothing_shared() -> None:
    all_of_it = QuotaSettings.model_validate({"cpu": "500", "memory": "9Ti", "nvidia.com/gpu": "64"}, strict=False)
    assert quota(team("given", quota=all_of_it), team("rest", share=1), nodes=1) == ["64", "0"]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"small": 1, "large": 1000}, "its share of 1 rounds to 0 of the 16 .* raise its share to 33 to give it one"),
        ({f"t{index:02}": 1000 for index in range(17)}, "lower the other shares, or raise mlbatch:nodes.count"),
        ({"small": 63, "large": 1000}, None),
    ],
)
def test_the_reader_of_a_run_is_told_of_a_share_without_gpus(shares: dict[str, int], said: str | None) -> None:
    teams = [{"name": name, "users": [], "share": share} for name, share in shares.items()]
    raw = {"target": "simulated", "nodes": {"count": 3, "gpusPerNode": 8}, "teams": teams}
    found = rules.warnings(partial_of(raw))
    assert len(found) == (said is not None)
    assert said is None or re.search(said, found[0])


class TestReserve:
    def reserving(self, nodes: int) -> NodePool:
        return replace(pool(nodes), reserved={names.CPU: Quantity.parse("2500m"), names.MEMORY: Quantity.parse("4Gi")})

    def test_the_slack_queue_leaves_a_node_what_its_daemon_sets_need(self) -> None:
        slack = slack_quota(None, self.reserving(2))
        assert {resource: str(slack[resource]) for resource in (names.CPU, names.MEMORY, names.GPU)} == {
            names.CPU: "93500m",
            names.MEMORY: "1896Gi",
            names.GPU: "8",
        }

    def test_shares_leave_each_node_what_its_daemon_sets_need(self) -> None:
        nodes = self.reserving(3)
        found = team_quotas([team("blue", share=1)], slack_quota(None, nodes), nodes)["blue"]
        assert {resource: str(found[resource]) for resource in (names.CPU, names.MEMORY, names.GPU)} == {
            names.CPU: "187",
            names.MEMORY: "3792Gi",
            names.GPU: "16",
        }

    def test_a_job_that_asks_for_all_that_a_queue_has_of_one_node_is_placed(self) -> None:
        nodes = self.reserving(1)
        found = team_quotas([team("blue", share=1)], slack_quota(None, nodes), nodes)["blue"]
        for resource, amount in nodes.shape.resources.items():
            assert found[resource] + nodes.reserved.get(resource, ZERO) <= amount

    def test_what_is_given_stays_as_it_is(self) -> None:
        given = team_quotas([team("given", quota=GIVEN)], slack_quota(None, pool(1)), self.reserving(1))
        assert given["given"] == GIVEN.amounts()
