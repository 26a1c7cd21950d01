"""Shares of the nodes, as teams' quotas."""

from __future__ import annotations

from typing import Any

import pytest

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from stacks.quotas import slack_quota, team_quotas
from stacks.settings.machines import MACHINES
from stacks.settings.tenancy import QueueingSettings, QuotaSettings, TeamSettings

GIVEN = QuotaSettings.model_validate({"cpu": "10", "memory": "100Gi", "nvidia.com/gpu": "3"}, strict=False)


def pool(count: int) -> NodePool:
    shape = MACHINES["Standard_ND96isr_H100_v5"].shape(cpu=Quantity.parse(96), memory=Quantity.parse("1900Gi"))
    return NodePool(count=count, shape=shape)


def team(name: str, **amounts: Any) -> TeamSettings:
    return TeamSettings.model_construct(name=name, users=(), **{"quota": None, "share": None, **amounts})


def quota(*teams: TeamSettings, nodes: int, resource: str = names.GPU) -> list[str]:
    found = team_quotas(teams, slack_quota(QueueingSettings(), pool(nodes)), pool(nodes))
    return [str(found[team.name][resource]) for team in teams]


@pytest.mark.parametrize(
    ("nodes", "resource", "expected"),
    [
        (1, names.GPU, ["4", "4"]),  # one node: nothing is slack
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


def test_what_does_not_divide_goes_to_the_first() -> None:
    assert quota(*(team(name, share=1) for name in "abc"), nodes=1) == ["3", "3", "2"]


def test_shares_weigh_against_each_other() -> None:
    assert quota(team("blue", share=3), team("red", share=1), nodes=1) == ["6", "2"]


def test_given_quotas_come_first_and_shares_divide_the_rest() -> None:
    assert quota(team("given", quota=GIVEN), team("rest", share=1), nodes=1) == ["3", "5"]


def test_nothing_left_is_nothing_shared() -> None:
    all_of_it = QuotaSettings.model_validate({"cpu": "500", "memory": "9Ti", "nvidia.com/gpu": "64"}, strict=False)
    assert quota(team("given", quota=all_of_it), team("rest", share=1), nodes=1) == ["64", "0"]
