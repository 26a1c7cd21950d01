"""What a scenario that fails says proves its mechanism where that is what is seen without it, and nowhere else."""

import re
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from lab.scenarios import attacks, plays, run, stage
from lab.scenarios.plays import SCENARIOS, Scenario
from lab.scenarios.record import Record
from lab.scenarios.run import Outcome
from lab.scenarios.size import BOUND, Size

NO_QUOTA = (
    "Kueue says: couldn't assign flavors to pod set own-0-0: insufficient unused quota for nvidia.com/gpu in flavor "
    "default-flavor, 8 more needed"
)
NO_NODE = (
    "the scheduler says: 0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 3 Insufficient "
    "nvidia.com/gpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
)
SEEN: Mapping[str, str] = {
    "queueing": "not so: red/next-2 waits",
    "fair-sharing": "not so: the first job of carol goes before the next one of alice",
    "borrowing": f"blue/loan-0 runs: not within 45 s; last seen: []; {NO_QUOTA}",
    "reclaim": f"red/own-0 runs: not within 45 s; last seen: []; {NO_QUOTA}",
    "priorities": f"red/urgent runs: not within 45 s; last seen: []; {NO_QUOTA}",
    "gangs": "not so: a gang that does not run holds no node",
    "packing": f"red/whole-0 runs: not within 45 s; last seen: []; {NO_NODE}",
    "quota-dodging": "not so: a job that says it is admitted is refused",
    "isolation": "not so: no pod of blue takes a node past the scheduler",
    "node-failure": "the slack queue lends 0: not within 45 s; last seen: None",
    "gpu-repair": "gpu-node-0 is quarantined: not within 45 s; last seen: None",
    "beyond-slack": "the slack queue lends no GPUs: not within 45 s; last seen: None",
    "retries": "the job has failed for good: not within 112.5 s; last seen: None",
}
"""The message of each scenario on a cluster without its mechanism."""
SLOW = (
    "last seen: []; the reason is unknown",
    "last seen: ['gpu-node-0']; the reason is unknown",
    f"last seen: []; {NO_QUOTA}. Pending the preemption of 1 workload(s)",
    f"last seen: []; {NO_QUOTA}. Preempting 1 workload(s) failed, will retry.",
    "last seen: []; the scheduler says: 0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims",
    "last seen: {}",
    "last seen: 0",
    "last seen: '8'",
    "last seen: 'Resetting'",
)
"""Messages of steps that take too long with all mechanisms."""
UNRELATED = (
    "no refusal but HTTP 500: etcdserver: request timed out",
    "refused for another reason: the pods of all components are counted",
    "it was created 3 times, and may be recreated 1 times",
    "next-0 did not wait",
    "another team's job had to wait",
    "red's job runs no more",
    "",
)


class Smooth:
    """A stage that keeps every promise.

    steps: the awaited steps. within: the promised seconds. held: the message if a condition without a delay does not
    hold.
    """

    def __init__(self) -> None:
        self.size, self.nodes, self.record, self.members = (
            Size(),
            ["gpu-node-0", "gpu-node-1"],
            Record(),
            {"blue": self},
        )
        self.cluster = SimpleNamespace(existing=lambda *_: {"metadata": {"uid": "x"}})
        self.steps: list[str] = []
        self.within: dict[str, float] = {}
        self.held: list[str] = []
        self._started = 0

    def submit(self, *_: object, **__: object) -> None:
        """Reject no request."""

    end = submit

    def until(self, what: str, probe: Callable[[], Any], *_: object, seconds: float | None = None) -> Any:
        self.steps.append(what)
        if seconds is not None:
            self.within[what] = seconds
        self._started += what == "one more starts"
        answers = {
            "one more starts": [f"next-{index}" for index in range(self._started)],
            "one gang runs whole": ["red"],
        }
        return answers[what] if what in answers else probe()

    def stays(self, what: str, *_: object, **__: object) -> None:
        self.held.append(f"not so: {what}")

    def runs(self, team: str, name: str, *_: object, **__: object) -> None:
        self.steps.append(f"{team}/{name} runs")

    def all_run(self, jobs: Mapping[str, str]) -> None:
        self.steps += [f"{team}/{name} runs" for name, team in jobs.items()] + ["Kueue sees them run"]

    def judged(self, team: str, name: str) -> None:
        self.steps.append(f"Kueue has looked at {team}/{name}")

    def waits(self, team: str, name: str) -> str:
        self.judged(team, name)
        self.held.append(f"not so: {team}/{name} waits")
        return "insufficient quota for nvidia.com/gpu"

    def phase(self, *_: str) -> str:
        return "Running"

    def up(self, *_: str) -> list[str]:
        return ["gpu-node-0"]

    def bound(self, *_: str) -> list[str]:
        return []


@pytest.fixture
def smooth(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], Smooth]:
    """Return a scenario's stage after a run without errors."""
    twice = [{"status": {"phase": "Running"}, "metadata": {"ownerReferences": [{"uid": attempt}]}} for attempt in "12"]

    def played(scenario: Scenario) -> Smooth:
        scene = Smooth()
        pods = twice if scenario.name == "retries" else []
        monkeypatch.setattr(plays, "time", SimpleNamespace(sleep=lambda _: None, monotonic=lambda: 0.0))
        monkeypatch.setattr(plays, "pods_of", lambda *_: pods)
        monkeypatch.setattr(plays, "_crash", lambda *_: None)
        monkeypatch.setattr(plays, "mark", lambda *_: None)
        monkeypatch.setattr(plays, "lending_limit", lambda *_: None)
        monkeypatch.setattr(plays, "broken_gpu", MagicMock())
        monkeypatch.setattr(attacks, "_fails", lambda scene, what, *_: scene.held.append(f"not so: {what}"))
        monkeypatch.setattr(attacks, "_stored", lambda *_: {"spec": {"suspend": True}})
        assert run.broken(scenario, cast(stage.Stage, scene)) is None
        return scene

    return played


def proven(said: Iterable[str]) -> dict[str, list[str]]:
    """Return the scenarios that each message proves, without messages that prove none."""
    found = {text: [s.name for s in SCENARIOS.values() if Outcome(s, text, 0).is_proof] for text in said}
    return {text: names for text, names in found.items() if names}


def test_what_is_seen_without_a_mechanism_is_the_proof_of_its_own_scenario_alone() -> None:
    assert proven(SEEN.values()) == {text: [name] for name, text in SEEN.items()}
    assert set(SEEN) == set(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_it_is_something_that_the_scenario_says(scenario: Scenario, smooth: Callable[[Scenario], Smooth]) -> None:
    scene, text = smooth(scenario), SEEN[scenario.name]
    assert text in scene.held or text.partition(": not within")[0] in scene.steps


def test_no_step_of_any_scenario_that_takes_too_long_is_a_proof(smooth: Callable[[Scenario], Smooth]) -> None:
    steps = {step for scenario in SCENARIOS.values() for step in smooth(scenario).steps}
    assert len(steps) > 3 * len(SCENARIOS)
    assert proven(f"{step}: not within 45 s; {end}" for step in steps for end in SLOW) == {}


def test_nothing_else_that_does_not_hold_is_a_proof(smooth: Callable[[Scenario], Smooth]) -> None:
    held = {text for scenario in SCENARIOS.values() for text in smooth(scenario).held}
    assert len(held) > len(SCENARIOS)
    assert proven([*held - set(SEEN.values()), *UNRELATED]) == {}


def test_a_job_that_loses_its_node_has_the_seconds_that_the_page_names(smooth: Callable[[Scenario], Smooth]) -> None:
    assert smooth(SCENARIOS["node-failure"]).within == {"red/own-0 runs on another node": BOUND}


def test_what_is_promised_within_seconds_is_not_waited_for_longer() -> None:
    scene = object.__new__(stage.Stage)
    scene.patience, scene.record = 3600, Record()
    with pytest.raises(AssertionError, match=r"^it is there: not within 0 s"):
        scene.until("it is there", lambda: False, seconds=0)


def test_only_what_a_mechanism_keeps_is_given_up_early_where_it_is_away() -> None:
    for name, text in SEEN.items():
        step, slow, _ = text.partition(": not within")
        assert bool(re.fullmatch(SCENARIOS[name].hopeless, step)) == bool(slow)
    scene = object.__new__(stage.Stage)
    scene.patience, scene.record, scene.hopeless = 0, Record(), (SCENARIOS["reclaim"].hopeless, -1)
    for what, seconds in (("blue/loan-0 runs", 0), ("red/own-0 runs", -1)):
        with pytest.raises(AssertionError, match=f"^{what}: not within {seconds} s"):
            scene.until(what, lambda: False)


@pytest.mark.parametrize(
    ("quota", "scheduled", "said"),
    [
        (None, None, "the reason is unknown"),
        ({"type": "QuotaReserved", "status": "False", "message": "insufficient"}, None, "Kueue says: insufficient"),
        ({"type": "QuotaReserved", "status": "True", "message": "admitted"}, None, "the reason is unknown"),
        (
            {"type": "QuotaReserved", "status": "True", "message": "admitted"},
            {"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"},
            "the scheduler says: 0/4 nodes are available",
        ),
    ],
)
def test_of_a_job_that_does_not_run_it_is_said_why(
    quota: dict[str, str] | None, scheduled: dict[str, str] | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = {"metadata": {"name": "appwrapper-job-1"}, "status": {"conditions": [quota] if quota else None}}
    pod = {"status": {"phase": "Pending", "conditions": [scheduled] if scheduled else None}}
    monkeypatch.setattr(stage, "pods_of", lambda *_: [pod])
    scene = object.__new__(stage.Stage)
    scene.cluster, scene.patience, scene.record = SimpleNamespace(list=lambda *_: [workload]), 0, Record()
    with pytest.raises(AssertionError, match=f"^blue/job runs: not within 0 s; last seen: \\[\\]; {said}$"):
        scene.runs("blue", "job")


def test_a_job_that_has_quota_does_not_wait() -> None:
    condition = {"type": "QuotaReserved", "status": "False", "message": "insufficient"}
    workload = {"metadata": {"name": "appwrapper-job-1"}, "status": {"conditions": [condition]}}
    scene = object.__new__(stage.Stage)
    scene.cluster, scene.patience, scene.record = SimpleNamespace(list=lambda *_: [workload]), 0, Record()
    assert scene.waits("blue", "job") == "insufficient"
    condition["status"] = "True"
    with pytest.raises(AssertionError, match=r"^not so: blue/job waits$"):
        scene.waits("blue", "job")
