"""The benchmarks name what they measure, print each row at once, and skip rows that would end too late."""

from argparse import Namespace
from pathlib import Path

import pytest

from emulator.paths import Paths
from lab.bench import __main__ as command
from lab.bench import teams
from lab.bench.budget import Budget
from lab.bench.teams import HEADER, Sample
from tests.local import official


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_would_end_too_late_is_not_begun_and_said() -> None:
    clock = Clock()
    budget = Budget(600, clock)
    assert budget.allows("first", 600)
    clock.now += 500
    assert not budget.allows("second", 101)
    assert budget.allows("third", 100)
    assert budget.report() == "in all 8m20s; left out, which `--minutes` makes room for: second"


def test_nothing_is_said_to_be_left_out_where_nothing_is() -> None:
    assert Budget(600, Clock()).report() == "in all 0.0s"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record which numbers of teams are measured, in no time."""
    found: list[int] = []

    def measure(paths: Paths, folder: Path, count: int, *more: object) -> Sample:
        found.append(count)
        seconds = float(count)
        return Sample(
            teams=count, objects=4 * count, up=seconds, apply=seconds, preview=seconds, diff=2 * seconds,
            memory=1, kubectl_memory=1,
        )  # fmt: skip

    monkeypatch.setattr(teams, "measure", measure)
    return found


def test_a_row_is_there_before_the_next_is_measured(tmp_path: Path, measured: list[int]) -> None:
    lines = teams.lines(Paths.of(state=tmp_path), tmp_path, [10, 100], 1, Budget(600))
    assert next(lines) == HEADER
    assert measured == []
    assert next(lines).split()[:2] == ["10", "40"]
    assert measured == [10]
    assert next(lines).split()[:2] == ["100", "400"]
    assert list(lines) == [
        "up grows with teams^1.00 from 10 to 100 teams (1 is linear)",
        "preview grows with teams^1.00 from 10 to 100 teams (1 is linear)",
    ]


def test_a_row_without_time_is_left_out(tmp_path: Path, measured: list[int]) -> None:
    budget = Budget(1)
    assert list(teams.lines(Paths.of(state=tmp_path), tmp_path, [10, 100], 1, budget)) == [HEADER]
    assert measured == []
    assert budget.left_out == ["10 teams", "100 teams"]


def test_the_providers_that_are_measured_stand_first(tmp_path: Path) -> None:
    lines = command.figures(Paths.of(state=tmp_path), tmp_path, Namespace(only=[]), Budget(600))
    assert list(lines) == [f"provider {line}" for line in official.providers()]
