"""Scenarios of the platform's promises to teams, and two of them with their mechanism disabled."""

from pathlib import Path

import pytest

from emulator.paths import Paths
from lab.scenarios.mechanisms import MECHANISMS
from lab.scenarios.plays import SCENARIOS, Scenario
from lab.scenarios.run import play
from lab.scenarios.size import Size, scenario_settings
from lab.scenarios.stage import settle
from tests.local.environment import Cluster, Project
from tests.local.standing import Standing

SIZE = Size()
SHORT = [scenario for scenario in SCENARIOS.values() if not scenario.takes_minutes]
BROKEN = ("reclaim", "isolation")
"""Two that fail within seconds. `make soak` runs all without their mechanism."""


@pytest.fixture(scope="module")
def project(standing: Standing) -> Project:
    return standing.up("dev", lambda project: scenario_settings(project, SIZE))


@pytest.mark.parametrize("scenario", SHORT, ids=lambda scenario: scenario.name)
def test_a_promise_is_kept(
    scenario: Scenario, project: Project, paths: Paths, cluster: Cluster, tmp_path: Path
) -> None:
    settle(cluster)
    outcome = play(scenario, paths, SIZE, tmp_path / "picture.svg")
    assert outcome.broken is None
    assert "kept" in (tmp_path / "picture.svg").read_text()


@pytest.mark.soak("a minute; tests/unit/test_scenario_proofs.py has each proof")
@pytest.mark.parametrize("name", BROKEN)
def test_without_its_mechanism_a_promise_is_not_kept(
    name: str, project: Project, paths: Paths, cluster: Cluster
) -> None:
    settle(cluster)
    scenario = SCENARIOS[name]
    with MECHANISMS[scenario.breaks](cluster, project, SIZE):
        outcome = play(scenario, paths, SIZE, hopeless=30)
    assert outcome.is_proof, outcome.verdict
