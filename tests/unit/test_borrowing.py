"""An older Kueue holds what an owner borrows against it; there, borrowing is bounded in proportion to GPUs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from components import catalogue, names
from components.compatibility import reclaims_while_borrowing
from components.kubernetes.quantity import Quantity
from stacks import validation
from stacks.borrowing import borrowing_limits
from tests.unit.configurations import errors_of, partial_of

OLD, NEW = "v0.15.2", "v0.15.8"
QUOTA = {"cpu": 224, "memory": "2000Gi", "nvidia.com/gpu": 8, "pods": 100}


def stack(version: str, **teams: dict[str, Any]) -> dict[str, Any]:
    """Four nodes: the slack queue has one of them, three teams one each."""
    return {
        "target": "simulated",
        "nodes": {"count": 4, "instanceType": "h100-sxm5-8x", "gpusPerNode": 8},
        "queueing": {"slack": dict(QUOTA), "kueueVersion": version},
        "teams": [
            {"name": name, "users": [], "quota": dict(QUOTA), **teams.get(name, {})}
            for name in ("blue", "green", "red")
        ],
    }


def limits(version: str, **teams: dict[str, Any]) -> dict[str, str]:
    partial = partial_of(stack(version, **teams))
    return {resource: str(amount) for resource, amount in partial.borrowing_limits["red"].items()}


@pytest.mark.parametrize(("version", "reclaims"), [("v0.15.2", False), ("v0.15.6", True), ("v0.15.8", True)])
def test_which_kueue_reclaims_while_the_owner_borrows(version: str, reclaims: bool) -> None:
    assert reclaims_while_borrowing(version) is reclaims


def test_the_default_kueue_bounds_no_borrowing_and_the_older_one_can_still_be_chosen() -> None:
    assert catalogue.versions(catalogue.KUEUE) == (NEW, OLD)
    assert limits(NEW) == {}


def test_on_the_older_kueue_a_team_borrows_less_than_its_gpus_are_of_all() -> None:
    assert limits(OLD) == {"cpu": "223", "memory": "1999Gi", "pods": "99"}


def test_the_reader_of_a_run_is_told_what_the_bound_leaves_open() -> None:
    (said,) = validation.warnings(partial_of(stack(OLD)))
    assert "may wait for its own GPUs where they are lent to many small jobs" in said
    assert f"set mlbatch:queueing.kueueVersion to {NEW}" in said
    assert validation.warnings(partial_of(stack(NEW))) == []
    without = {"target": "simulated", "queueing": {"enabled": False, "kueueVersion": OLD}}
    assert [text for text in validation.warnings(partial_of(without)) if "may wait" in text] == []


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
    partial = partial_of(stack(OLD, red={"quota": {**QUOTA, "nvidia.com/gpu": gpus}}))
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


def test_a_job_that_the_bound_keeps_from_ever_running_is_refused() -> None:
    few = {**QUOTA, "pods": 10}
    raw = stack(OLD, blue={"users": ["alice"], "quota": {**few, "pods": 1}}, green={"quota": few}, red={"quota": few})
    raw["queueing"]["slack"] = few
    raw["samples"] = {"gang": {"team": "blue", "user": "alice", "pods": 20, "gpusPerPod": 1}}
    (problem,) = errors_of(raw)
    assert problem.path == ("samples", "gang", "pods")
    assert "team blue can never have more than 8: 1 of its own and 7 that it may borrow" in problem.message
    raw["queueing"]["kueueVersion"] = NEW
    assert errors_of(raw) == []
