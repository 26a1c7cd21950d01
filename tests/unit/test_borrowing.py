"""An older Kueue counts an owner's loans against the owner. There, GPUs limit what a team borrows."""

from fractions import Fraction
from typing import Any

import pytest

from components import catalogue, names
from components.compatibility import reclaims_while_borrowing
from components.kubernetes.quantity import Quantity
from components.queueing import kueue
from stacks.derived.borrowing import borrowing_limits
from tests.unit.configurations import partial_of

OLD, NEW = "0.10.1", catalogue.versions(catalogue.KUEUE)[0]
QUOTA = {"cpu": 224, "memory": "2000Gi", "nvidia.com/gpu": 8, "pods": 100}


def stack(**teams: dict[str, Any]) -> dict[str, Any]:
    """Four nodes: the slack queue has one of them, three teams one each."""
    return {
        "target": "simulated",
        "nodes": {"count": 4, "instanceType": "h100-sxm5-8x", "gpusPerNode": 8},
        "queueing": {"slack": dict(QUOTA)},
        "teams": [
            {"name": name, "users": [], "quota": dict(QUOTA), **teams.get(name, {})}
            for name in ("blue", "green", "red")
        ],
    }


def limits(version: str, **teams: dict[str, Any]) -> dict[str, str]:
    partial = partial_of(stack(**teams))
    assert partial.slack is not None
    found = borrowing_limits(partial.known_teams, partial.quotas, partial.slack, version)
    return {resource: str(amount) for resource, amount in found["red"].items()}


@pytest.mark.parametrize(("version", "reclaims"), [(OLD, False), ("v0.15.6", False), ("v0.18.4", False), (NEW, True)])
def test_which_kueue_reclaims_while_the_owner_borrows(version: str, reclaims: bool) -> None:
    assert reclaims_while_borrowing(version) is reclaims


def test_the_default_kueue_bounds_no_borrowing_and_the_older_one_does() -> None:
    default, older = catalogue.versions(catalogue.KUEUE)
    assert limits(default) == {}
    assert limits(older) == limits(OLD) != {}


def test_who_preempts_is_admitted_first_where_kueue_can() -> None:
    assert kueue.configuration()["featureGates"]["PrioritizePreemptorWorkloads"]
    known = kueue.configuration(gates=kueue.GATES_BEFORE)["featureGates"]
    assert "PrioritizePreemptorWorkloads" not in known, "an older Kueue ends at a gate that it does not know"


def test_on_the_older_kueue_a_team_borrows_less_than_its_gpus_are_of_all() -> None:
    assert limits(OLD) == {"cpu": "223", "memory": "1999Gi", "pods": "99"}


def test_a_limit_of_the_teams_own_stands() -> None:
    assert limits(OLD, red={"borrowingLimit": {"cpu": 500, "nvidia.com/gpu": 0}}) == {
        "cpu": "500",
        "nvidia.com/gpu": "0",
        "memory": "1999Gi",
        "pods": "99",
    }


def test_a_team_without_gpus_to_lend_has_none_to_wait_for() -> None:
    assert limits(OLD, red={"quota": {**QUOTA, "nvidia.com/gpu": 0}}) == {}
    assert limits(OLD, red={"lendingLimit": {"nvidia.com/gpu": 0}}) == {}


def test_what_is_not_lent_counts_for_nobodys_share() -> None:
    """Of 32 GPUs 28 are lent, 4 of them red's, and of 896 CPUs 696."""
    found = limits(OLD, red={"lendingLimit": {"nvidia.com/gpu": 4, "cpu": 24}})
    assert found["cpu"] == "99"  # below 696 * 4 / 28


@pytest.mark.parametrize("gpus", [1, 3, 8, 24])
def test_the_largest_share_of_anything_else_stays_below_that_of_the_teams_gpus(gpus: int) -> None:
    partial = partial_of(stack(red={"quota": {**QUOTA, "nvidia.com/gpu": gpus}}))
    assert partial.slack is not None
    found = borrowing_limits(partial.known_teams, partial.quotas, partial.slack, OLD)["red"]
    lendable = {
        resource: partial.slack[resource].nano + sum(quota[resource].nano for quota in partial.quotas.values())
        for resource in names.RESOURCES
    }
    part = Fraction(gpus * 10**9, lendable[names.GPU])
    one = {names.MEMORY: Quantity.parse("1Gi")}
    for resource, limit in found.items():
        assert Fraction(limit.nano, lendable[resource]) < part
        assert Fraction((limit + one.get(resource, Quantity.parse(1))).nano, lendable[resource]) >= part
