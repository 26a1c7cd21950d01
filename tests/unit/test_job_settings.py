"""Bounds of members' jobs: what the settings refuse, and what follows from them for AppWrapper and its policy."""

from pathlib import Path
from typing import Any

import pytest

from components.queueing.fault_tolerance import DEFAULTS
from components.queueing.kueue import REQUEUES, PodsReady
from components.tenancy.job_bounds import JobBounds, spoken
from tests.unit.configurations import settings_of

ROOT = Path(__file__).resolve().parents[2]


def configured(**jobs: Any) -> dict[str, Any]:
    return {"target": "simulated", "tenancy": {"jobs": jobs}}


def test_the_defaults_are_those_of_the_bounds() -> None:
    assert settings_of(configured()).tenancy.jobs.bounds() == JobBounds()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (90, "90s"), (120, "2m"), (3600, "1h"), (5400, "90m")])
def test_bounds_are_told_as_members_write_them(seconds: int, text: str) -> None:
    assert spoken(seconds) == text


class TestJobsThatNeverRun:
    """How long they hold quota, as docs/promises.md says it of the defaults."""

    TEXT = " ".join((ROOT / "docs" / "promises.md").read_text().split())

    def test_a_job_that_asks_for_nothing(self) -> None:
        tries = DEFAULTS.retries + 1
        said = (
            f"{tries} attempts of {DEFAULTS.warmup_grace // 60} minutes, with pauses of {DEFAULTS.retry_pause} seconds"
        )
        assert said in self.TEXT

    def test_a_job_that_asks_for_the_most(self) -> None:
        most = JobBounds()
        tries, between = most.retries + 1, most.forced_deletion_grace + most.retry_pause
        seconds = tries * max(most.warmup_grace, most.admission_grace) + most.retries * between + most.failed_grace
        assert f"{tries} attempts" in self.TEXT
        assert f"of {most.warmup_grace // 60} minutes" in self.TEXT
        assert f"{seconds // 3600} hours and {seconds % 3600 // 60} minutes" in self.TEXT

    def test_a_job_in_no_appwrapper(self) -> None:
        assert f"{REQUEUES} attempts of `mlbatch:recovery.startTimeoutMinutes`" in self.TEXT
        assert REQUEUES * PodsReady().start_seconds > 24 * 3600
        assert f"After {REQUEUES} times" in (ROOT / "docs" / "recovery.md").read_text()
