"""The long run's trace and its judge, which must find every violation."""

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
from tests.unit.tables import table

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


COMMANDS: dict[str, Callable[[Sequence[str]], int | None]] = {
    "asks": asks,
    "costs": costs,
    "kills_updates": kills_updates,
    "measures_at_scale": measures_at_scale,
    "measures_memory": measures_memory,
    "plays_a_day": plays_a_day,
    "plays_scenarios": plays_scenarios,
    "runs_jobs": runs_jobs,
}
LONG = ["runs_jobs", [f"--jobs={'9' * 5000}"], f"JOBS={'9' * 40}... is invalid: give a whole number"]
WRONG = {**table("soak", "wrong"), "a number of pages": LONG}


@pytest.mark.parametrize(("command", "arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_size_that_is_none_is_one_error_before_a_cluster_starts(
    command: str,
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
        code = COMMANDS[command](arguments)
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
