"""Runs a scenario on an existing cluster and returns the outcome."""

import re
from dataclasses import dataclass
from pathlib import Path

from emulator.paths import Paths
from lab.scenarios.gantt import svg
from lab.scenarios.plays import Scenario
from lab.scenarios.record import Record, recorded
from lab.scenarios.size import Size
from lab.scenarios.stage import Stage
from tests.local.environment import Cluster


@dataclass(frozen=True)
class Outcome:
    """The outcome of a scenario. broken: the broken promise, None if all were kept. seconds: its duration."""

    scenario: Scenario
    broken: str | None
    seconds: float

    @property
    def is_proof(self) -> bool:
        """Whether it failed at the step that its mechanism keeps, and not because of a slow machine or another
        error.
        """
        return self.broken is not None and re.match(self.scenario.fails_at, self.broken) is not None

    @property
    def word(self) -> str:
        """Whether the promise was kept, and the reason if not."""
        return "kept" if self.broken is None else f"BROKEN: {self.broken}"

    @property
    def verdict(self) -> str:
        """The verdict as one line."""
        return f"{self.scenario.name}: {self.scenario.promise}: {self.word}"


def play(
    scenario: Scenario,
    paths: Paths,
    size: Size,
    picture: Path | None = None,
    patience: float = 120,
    hopeless: float | None = None,
) -> Outcome:
    """Run a scenario: print its timeline and verdict, write its picture. Restores the cluster's state.

    patience: seconds for each step.
    hopeless: seconds for the step that a disabled mechanism would keep. With the shorter time for all steps, a slow
        machine would look like a broken promise.
    """
    print(f"{scenario.name}: {scenario.promise}", flush=True)
    cluster, record = Cluster(paths.kubeconfig), Record()
    stage = Stage(paths, size, record, patience, None if hopeless is None else (scenario.hopeless, hopeless))
    try:
        with recorded(cluster, record):
            found = broken(scenario, stage)
        record.say("✓ kept" if found is None else f"✗ {found}")
        outcome = Outcome(scenario, found, record.now)
        if picture is not None:
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_text(svg(f"{scenario.name}: {scenario.promise}", outcome.word, record, stage.nodes))
    finally:
        stage.clear()
    return outcome


def broken(scenario: Scenario, stage: Stage) -> str | None:
    """Run a scenario; return the broken promise, None if it was kept."""
    try:
        scenario.play(stage)
    except AssertionError as error:
        return str(error).partition("\n")[0]
    return None
