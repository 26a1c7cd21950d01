"""The long run's trace and its judge, which must find every violation."""

from __future__ import annotations

import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lab.bench.scale.__main__ import main as measures_at_scale
from lab.gameday.__main__ import main as plays_a_day
from lab.scenarios.__main__ import main as plays_scenarios
from lab.scenarios.memory import main as measures_memory
from lab.soak.__main__ import main as runs_jobs
from lab.soak.__main__ import most_jobs
from lab.soak.answers.__main__ import main as asks
from lab.soak.answers.cost import main as costs
from lab.soak.judge import Claim, Judge
from lab.soak.kills import LONGEST_DELAY, moments
from lab.soak.kills import main as kills_updates
from lab.soak.trace import MOST_LOST, NODES, QUOTAS, trace

ROOT = Path(__file__).resolve().parents[2]
JOBS = {
    "own": Claim("red", 16),
    "loan": Claim("blue", 8),
    "held-0": Claim("blue", 8),
    "held-1": Claim("blue", 8),
}


def judged(open_jobs: list[str], running: list[str], healthy: int, seconds: int = 101) -> Judge:
    judge = Judge(JOBS, 100)
    for now in range(seconds + 1):
        judge.look(now, open_jobs=open_jobs, running=running, healthy_gpus=healthy)
    return judge


def test_a_job_that_waits_inside_its_quota_for_too_long_is_found() -> None:
    assert judged(["own"], [], healthy=48).late == {"own"}
    assert judged(["own"], [], healthy=48, seconds=100).late == set()
    assert judged(["own"], [], healthy=48, seconds=60).worst == 60


def test_who_runs_borrows_or_has_no_nodes_does_not_wait() -> None:
    assert judged(["own"], ["own"], healthy=48).late == set()
    everybody = [*JOBS]
    assert judged(everybody, ["own", "held-0", "held-1"], healthy=48).late == set(), "the loan is beyond the quota"
    assert judged(everybody, ["held-0", "held-1"], healthy=48).late == {"own"}
    assert judged(everybody, ["held-0", "held-1"], healthy=24).late == set(), "nobody can have what is not there"


def test_a_wait_that_ended_starts_anew() -> None:
    judge = Judge(JOBS, 100)
    for now in range(180):
        judge.look(now, open_jobs=["own"], running=["own"] if now == 90 else [], healthy_gpus=48)
    assert judge.late == set()


def test_a_seed_decides_everything() -> None:
    assert trace(7, 100) == trace(7, 100)
    assert trace(7, 100) != trace(8, 100)
    jobs, events = trace(7, 100)
    assert len(jobs) == 100
    assert len({event.fault for event in events}) == 6
    assert {job.team for job in jobs} == set(QUOTAS)
    for event in events:
        assert sum(other.at <= event.at < other.until for other in events) <= MOST_LOST < NODES


def test_the_number_of_jobs_that_is_named_is_the_most_that_fits() -> None:
    for seed in range(1, 6):
        most = most_jobs(trace(seed, 3000)[0])
        held = [max(Counter(job.team for job in trace(seed, count)[0]).values()) for count in (most, most + 1)]
        assert held == [1000, 1001]
    assert most_jobs(trace(1, 100)[0]) == 100


def test_a_seed_decides_when_updates_are_killed_and_no_part_of_one_is_left_out() -> None:
    found = moments(1, kills=20, objects=120)
    assert found == moments(1, kills=20, objects=120)
    assert found != moments(2, kills=20, objects=120)
    assert sorted((count - 1) // 6 for count, _ in found) == list(range(20))
    assert all(0 <= delay <= LONGEST_DELAY for _, delay in found)
    assert max(count for count, _ in moments(1, kills=20, objects=20)) < 20, "the update would be over"


LONG = "9" * 5000
WRONG: dict[str, tuple[Callable[[Sequence[str]], int | None], list[str], str]] = {
    "no job": (runs_jobs, ["--jobs=0"], "argument --jobs: JOBS=0 is invalid: give a whole number from 1 to 3000"),
    "fewer than none": (runs_jobs, ["--jobs=-1"], "JOBS=-1 is invalid: give a whole number from 1 to 3000"),
    "nothing": (runs_jobs, ["--jobs="], "JOBS= is invalid: give a whole number from 1 to 3000"),
    "a text": (runs_jobs, ["--jobs=many"], "JOBS=many is invalid: give a whole number from 1 to 3000"),
    "a part of a job": (runs_jobs, ["--jobs=1.5"], "JOBS=1.5 is invalid: give a whole number from 1 to 3000"),
    "too many": (runs_jobs, ["--jobs=1000000000"], "JOBS=1000000000 is invalid: give a whole number from 1 to 3000"),
    "a number of pages": (runs_jobs, [f"--jobs={LONG}"], f"JOBS={'9' * 40}... is invalid: give a whole number"),
    "more than a team's namespace holds": (
        runs_jobs,
        ["--jobs=3000"],
        "JOBS=3000 are 1005 of team red, and its namespace holds 1000: give 2957 or fewer",
    ),
    "a seed that is none": (runs_jobs, ["--seed=x"], "SEED=x is invalid: give a whole number"),
    "no kill": (kills_updates, ["--kills=0"], "KILLS=0 is invalid: give a whole number from 1 to 1000"),
    "no kill, before all else": (kills_updates, ["--kills=x", "--check"], "KILLS=x is invalid: give a whole number"),
    "fewer nodes than queues": (costs, ["--nodes=2"], "--nodes=2 is invalid: give a whole number from 3 to 1000"),
    "no question": (costs, ["--questions=0"], "--questions=0 is invalid: give a whole number from 1 to 1000"),
    "no seed of questions": (asks, ["--seed="], "SEED= is invalid: give a whole number"),
    "no nodes of scenarios": (plays_scenarios, ["--nodes=many"], "NODES=many is invalid: give a whole number"),
    "no nodes of a day": (plays_a_day, ["--nodes="], "NODES= is invalid: give a whole number"),
    "nodes below none": (plays_a_day, ["--nodes=-1"], "-1 nodes are too few"),
    "no seed of a day": (plays_a_day, ["--seed=monday"], "SEED=monday is invalid: give a whole number"),
    "no hours": (plays_a_day, ["--hours=all"], "HOURS=all is invalid: give a number"),
    "hours before the day": (plays_a_day, ["--hours=-1"], "no job arrives within -1 hours; write more"),
    "no time scale": (plays_a_day, ["--time-scale=fast"], "TIME_SCALE=fast is invalid: give a number"),
    "time that stands": (plays_a_day, ["--time-scale=nan"], "a time scale of nan is invalid; write a number from 1"),
    "time that goes backwards": (
        plays_a_day,
        ["--time-scale=-5"],
        "a time scale of -5 is invalid; write a number from 1",
    ),
    "no teams": (measures_at_scale, ["--teams=x"], "TEAMS=x is invalid: give a whole number"),
    "teams below none": (measures_at_scale, ["--teams=-1"], "TEAMS=-1 is not measured: give 1 to 100"),
    "no jobs at scale": (measures_at_scale, ["--jobs="], "JOBS= is invalid: give a whole number"),
    "no seed at scale": (measures_at_scale, ["--seed=1e3"], "SEED=1e3 is invalid: give a whole number"),
    "nodes without end": (measures_at_scale, ["--nodes=" + "9" * 30], f"NODES={'9' * 30} is not measured: give 1 to"),
    "nothing to compare with": (
        measures_memory,
        ["--nodes=3"],
        "argument --nodes: --nodes=3 is invalid: give a whole number from 4 to 1000",
    ),
    "no job to measure": (measures_memory, ["--jobs=0"], "--jobs=0 is invalid: give a whole number from 1 to 1000"),
}


@pytest.mark.parametrize(("command", "arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_size_that_is_none_is_one_error_before_a_cluster_starts(
    command: Callable[[Sequence[str]], int | None],
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_: object, **__: object) -> None:
        pytest.fail("a cluster was started")

    monkeypatch.setattr("tests.local.environment.local_cluster.start", start)
    monkeypatch.setattr("tests.local.environment.Toolchain", start)
    code: object = None
    try:
        code = command(arguments)
    except SystemExit as end:
        code = end.code
    told = capsys.readouterr().err or f"{code}\n"
    assert code not in (0, None)
    (line,) = told.splitlines()
    assert line.startswith("error: ")
    assert said in line


def test_make_looks_at_all_sizes_of_a_soak_before_its_first_hour() -> None:
    command = ["make", "--dry-run", "--no-print-directory", "soak", "JOBS=", "KILLS=a b", "SEED=-3"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    called = [shlex.split(line)[2:] for line in printed.splitlines() if " -m lab.soak" in line][:3]
    assert called == [
        ["lab.soak.kills", "--seed=-3", "--kills=a b", "--check"],
        ["lab.soak", "--seed=-3", "--jobs="],
        ["lab.soak.kills", "--seed=-3", "--kills=a b"],
    ]


def test_make_hands_over_the_sizes_of_the_large_benchmark() -> None:
    command = ["make", "--dry-run", "--no-print-directory", "bench-cluster", "TEAMS=", "JOBS=7", "SEED=2"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (called,) = [shlex.split(line)[3:] for line in printed.splitlines() if " -m lab.bench.scale" in line]
    assert called == ["--teams=", "--jobs=7", "--seed=2"]


def test_who_only_looks_at_the_options_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.soak.kills.local_project", lambda: pytest.fail("a cluster was started"))
    assert kills_updates(["--kills=5", "--check"]) == 0
