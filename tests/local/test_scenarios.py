"""Scenarios of the platform's promises to teams. `make soak` runs them without their mechanisms, too."""

from pathlib import Path

import pytest

from emulator.paths import Paths
from lab.scenarios.plays import SCENARIOS, Scenario
from lab.scenarios.run import play
from lab.scenarios.size import Size, scenario_settings
from lab.scenarios.stage import settle
from tests.local.environment import Cluster, Project
from tests.local.standing import Standing

SIZE = Size()
SHORT = [scenario for scenario in SCENARIOS.values() if not scenario.takes_minutes]


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
