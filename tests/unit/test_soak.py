"""The long run's trace and its judge, which must find what it is there to find."""

from __future__ import annotations

from tests.soak.judge import Judge
from tests.soak.kills import LONGEST_DELAY, moments
from tests.soak.trace import MOST_LOST, NODES, QUOTAS, Job, trace

OWN = Job(0, "red", "own", pods=2, seconds=60)
LOAN = Job(0, "blue", "loan", pods=1, seconds=60)
HELD = [Job(0, "blue", f"held-{number}", pods=1, seconds=60) for number in range(2)]
JOBS = {job.name: job for job in (OWN, LOAN, *HELD)}


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


def test_a_seed_decides_when_updates_are_killed_and_no_part_of_one_is_left_out() -> None:
    found = moments(1, kills=20, objects=120)
    assert found == moments(1, kills=20, objects=120)
    assert found != moments(2, kills=20, objects=120)
    assert sorted((count - 1) // 6 for count, _ in found) == list(range(20))
    assert all(0 <= delay <= LONGEST_DELAY for _, delay in found)
    assert max(count for count, _ in moments(1, kills=20, objects=20)) < 20, "the update would be over"
