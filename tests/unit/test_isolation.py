"""What a cluster without admission policies is warned of, and the resources that it then gets."""

from typing import Any

import pytest

from components.tenancy.promises import Promise
from stacks.config import parsing
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import ConfigError
from stacks.derived.partial import PartialSettings
from stacks.validation import isolation, rules
from tests.unit.configurations import aks, errors_of

PROMISES = [str(promise) for promise in Promise]
QUOTA = {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 8}
TEAMS = [{"name": "blue", "users": ["alice"], "quota": QUOTA}]


def judged(*, has_policies: bool, **sections: Any) -> tuple[list[ConfigError], list[str]]:
    """Return errors and warnings of a configuration on a cluster that has said whether it has the API."""
    partial, found = parsing.read({"target": "simulated", "teams": TEAMS, **sections})
    partial.facts = ClusterFacts(identifier="lab", version="1.34", has_admission_policies=has_policies)
    return found + rules.check(partial), rules.warnings(partial)


def accepted(*promises: str) -> dict[str, Any]:
    return {"tenancy": {"acceptUnenforced": list(promises)}}


@pytest.mark.parametrize("missing", PROMISES)
def test_a_promise_that_is_not_accepted_is_one_too_few(missing: str) -> None:
    (error,), _ = judged(has_policies=False, **accepted(*(name for name in PROMISES if name != missing)))
    assert error.message.endswith(f"teams: {missing}")


def test_who_accepts_all_is_warned_of_each() -> None:
    errors, (warning,) = judged(has_policies=False, **accepted(*PROMISES))
    assert errors == []
    assert "this cluster does not enforce these promises" in warning
    assert all(promise in warning for promise in PROMISES)


@pytest.mark.parametrize(("has_policies", "expected"), [(False, PROMISES), (True, [])])
def test_outputs_and_the_teams_namespaces_name_what_nothing_holds(has_policies: bool, expected: list[str]) -> None:
    partial, _ = parsing.read({"target": "simulated", "teams": TEAMS, **accepted(*PROMISES)})
    partial.facts = ClusterFacts(identifier="lab", version="1.34", has_admission_policies=has_policies)
    assert list(isolation.unenforced(partial)) == expected


def test_what_is_enforced_is_accepted_for_nothing() -> None:
    errors, (warning,) = judged(has_policies=True, **accepted("quota-gate"))
    assert errors == []
    assert "no effect" in warning
    assert judged(has_policies=True) == ([], [])


def test_a_cluster_without_teams_promises_nothing() -> None:
    assert judged(has_policies=False, teams=[]) == ([], [])
    assert judged(has_policies=False, teams=[], tenancy={"enabled": False})[0] == []


@pytest.mark.parametrize(("version", "has_them"), [("1.29", False), ("1.34", True)])
def test_a_cluster_that_is_yet_to_be_made_has_what_its_version_has(version: str, has_them: bool) -> None:
    partial, _ = parsing.read(aks({"kubernetesVersion": version}))
    assert partial.has_admission_policies is has_them


def test_a_cluster_that_nobody_has_asked_is_not_judged() -> None:
    assert PartialSettings().has_admission_policies is None
    assert errors_of({"target": "simulated", "teams": TEAMS}) == []
