"""The game day: its trace, its accounting and its report, which must name every loss."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ReadTimeoutError

from components.workloads.synthetic import Failure, Kind, SyntheticJob
from emulator.cluster.memory import BASE, JOB, NODE
from lab.gameday.__main__ import main
from lab.gameday.drawing import Usage, usage
from lab.gameday.ledger import Ledger, Seen
from lab.gameday.recorded import LONGEST, day
from lab.gameday.report import Report, html, text
from lab.gameday.run import Day
from lab.gameday.size import Size
from lab.scenarios.memory import TooLargeError, check, with_descendants
from lab.soak.trace import Event, Fault
from runner.picture.charts import classes
from runner.picture.rendering import render
from stacks.config.trace import parse, write

ROOT = Path(__file__).parents[2]
QUOTAS = {"blue": 16, "red": 16}
ONE = SyntheticJob(name="one", team="blue", arrival=0, pods=2, gpus=4, seconds=60, priority_class="default-priority")
LOAN = replace(ONE, name="loan", team="red", pods=4, gpus=8)
HERE = frozenset({"node-0"})
UP = Seen("Running", up=2, gpus=8, nodes=HERE)
STARTING = Seen("Running", gpus=8)
WAITS = Seen("Suspended")


def played(looks: list[Seen], job: SyntheticJob = ONE, lost: dict[int, frozenset[str]] | None = None) -> Ledger:
    """A book of one job, looked at once a second, on four nodes."""
    ledger = Ledger(QUOTAS, gpus=32, bound=100)
    ledger.submit(job, 0)
    for now, seen in enumerate(looks):
        if ledger.open:
            ledger.look(now, {job.name: seen}, (lost or {}).get(now, frozenset()), 32, seen.gpus)
    return ledger


def test_a_job_that_runs_through_wastes_nothing() -> None:
    ledger = played([WAITS, STARTING, UP, UP, UP, Seen("Succeeded")])
    tale = ledger.tales["one"]
    assert (tale.started, tale.ended, tale.useful, tale.wasted) == (2, 5, 8 * 4, 0)
    assert (ledger.used, ledger.idle, ledger.offered) == (32, 160 - 32, 160)
    assert (ledger.below["blue"], ledger.scarce["blue"]) == (1, 0)
    assert ledger.reclaims == [], "the owner has quota and room"


def test_what_is_done_before_a_node_is_lost_is_done_again() -> None:
    looks = [UP, UP, UP, Seen("Resetting", up=1, gpus=4, nodes=HERE), STARTING, UP, UP, Seen("Succeeded")]
    ledger = played(looks, lost={2: HERE, 3: HERE})
    tale = ledger.tales["one"]
    assert (tale.wasted, tale.useful) == (8 * 2 + 4, 8 * 3)
    assert (ledger.recoveries, ledger.reclaims, tale.evictions) == ([3], [], {}), "from the mark on"


def test_what_is_left_of_an_attempt_and_gangs_that_never_start_are_wasted() -> None:
    """A failed pod's siblings keep their GPUs until AppWrapper's grace is over; a gang may go before it is whole."""
    left = Seen("Running", up=1, gpus=4, nodes=HERE)
    ends = [Seen("Resetting"), STARTING, UP, UP, Seen("Succeeded")]
    tale = played([UP, UP, *[left] * 10, *ends], lost={1: HERE}).tales["one"]
    assert (tale.wasted, tale.useful) == (8 + 4 * 10, 8 * 3)
    tale = played([STARTING] * 5 + [Seen("Suspending"), WAITS, STARTING, UP, Seen("Succeeded")]).tales["one"]
    assert (tale.wasted, tale.useful) == (8 * 4, 8 * 2)
    tale = played([UP, left, STARTING, UP, Seen("Succeeded")]).tales["one"]
    assert (tale.wasted, tale.useful) == (4 + 8, 8), (
        "a pod that is replaced: what stood beside it has worked for nothing"
    )


def quiet(jobs: list[SyntheticJob], monkeypatch: pytest.MonkeyPatch) -> Day:
    """The start of a day on a cluster that receives no requests."""
    for name in ("Cluster", "Breaking"):
        monkeypatch.setattr(f"lab.gameday.run.{name}", lambda *_: None)
    monkeypatch.setattr("lab.gameday.run.as_member", lambda *_: None)
    return Day(SimpleNamespace(kubeconfig=None), Size(), [(job, {}) for job in jobs], [])


def test_a_day_goes_on_while_jobs_run_and_before_the_next_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long job, or a gap in the trace, is not a loss. Only a job that should progress and does not ends a day."""
    day = quiet([replace(ONE, arrival=5000)], monkeypatch)
    assert day._quiet_until() == 5000
    day.to_come.clear()
    assert day._quiet_until() == 0
    crashes = replace(ONE, seconds=4000, failure=Failure(Kind.CRASH, after=100, times=2))
    day.ledger.submit(crashes, 0)
    day.ledger.look(10, {"one": WAITS}, frozenset(), 32, 0)
    assert day._quiet_until() == 0, "it could run"
    day.ledger.look(20, {"one": UP}, frozenset(), 32, 8)
    assert day._quiet_until() == 20 + 4000 + 2 * 100


def test_a_job_whose_answer_was_lost_is_submitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that comes back slowly may have taken a job without saying so."""
    day, answers = quiet([ONE], monkeypatch), iter([ReadTimeoutError(None, "", "late"), ApiException(status=409)])

    def create(_: object) -> None:
        raise next(answers)

    day._members = {"blue": SimpleNamespace(create=create)}
    day._submit()
    assert (day.refused, day.ledger.open, len(day.to_come)) == (1, [], 1)
    day._submit()
    assert (day.refused, day.ledger.open, len(day.to_come)) == (1, ["one"], 0)


def test_who_ends_on_a_sick_node_before_it_has_to_go_has_lost_nothing() -> None:
    ledger = played([UP, UP, UP, Seen("Succeeded")], lost={1: HERE, 2: HERE})
    assert (ledger.tales["one"].wasted, ledger.recoveries) == (0, [])
    late = Seen("Suspended", evicted="PodsReadyTimeout")
    ledger = played([UP, UP, UP, late, UP, Seen("Succeeded")], lost={1: HERE})
    assert (ledger.tales["one"].evictions, ledger.recoveries) == ({"PodsReadyTimeout": 1}, []), (
        "the node was well again by then"
    )


def test_a_job_that_makes_place_is_preempted_and_has_lost_no_node() -> None:
    ledger = played([UP, UP, Seen("Suspending", evicted="Preempted"), WAITS, UP, Seen("Succeeded")])
    assert (ledger.tales["one"].evictions, ledger.recoveries) == ({"Preempted": 1}, [])


def test_an_owner_that_waits_for_a_borrower_reclaims() -> None:
    ledger = Ledger(QUOTAS, gpus=32, bound=100)
    ledger.submit(LOAN, 0)
    ledger.look(0, {"loan": Seen("Running", 4, 32, HERE)}, frozenset(), 32, 32)
    ledger.submit(ONE, 0)
    for now in range(1, 5):
        ledger.look(now, {"loan": Seen("Running", 4, 32, HERE), "one": WAITS}, frozenset(), 32, 32)
    ledger.look(5, {"loan": Seen("Suspended", evicted="Preempted"), "one": UP}, frozenset(), 32, 8)
    assert ledger.reclaims == [4]
    assert ledger.tales["loan"].evictions == {"Preempted": 1}
    assert ledger.below == {"blue": 4}, "the loan is beyond its team's quota, and owed to nobody"


def test_an_owner_that_waits_for_the_quota_of_a_borrower_between_two_attempts_reclaims() -> None:
    """The GPUs are free, and Kueue counts them for who will have them again in a moment."""
    ledger = Ledger(QUOTAS, gpus=32, bound=100)
    ledger.submit(LOAN, 0)
    ledger.look(0, {"loan": Seen("Running", 4, 32, HERE)}, frozenset(), 32, 32)
    ledger.submit(ONE, 1)
    ledger.look(1, {"loan": Seen("Resetting"), "one": WAITS}, frozenset(), 32, 0)
    ledger.look(2, {"loan": Seen("Suspended", evicted="Preempted"), "one": WAITS}, frozenset(), 32, 0)
    ledger.look(3, {"loan": WAITS, "one": UP}, frozenset(), 32, 8)
    assert ledger.reclaims == [2]


def test_quota_of_a_borrower_that_has_not_begun_is_waited_for_too() -> None:
    ledger = Ledger(QUOTAS, gpus=40, bound=100)
    ledger.submit(LOAN, 0)
    ledger.look(0, {"loan": Seen("Running")}, frozenset(), 32, 0)
    ledger.submit(ONE, 1)
    ledger.look(1, {"loan": Seen("Running"), "one": WAITS}, frozenset(), 32, 0)
    ledger.look(2, {"loan": Seen("Suspended"), "one": UP}, frozenset(), 32, 8)
    assert ledger.reclaims == [1]


def test_too_few_nodes_are_told_apart() -> None:
    ledger = Ledger(QUOTAS, gpus=32, bound=100)
    ledger.submit(ONE, 0)
    for now in range(4):
        ledger.look(now, {"one": WAITS}, HERE, 0, 0)
    assert (ledger.below["blue"], ledger.scarce["blue"]) == (3, 3)


def test_who_crashes_by_itself_is_owed_nothing_and_wastes_all() -> None:
    crashes = replace(ONE, failure=Failure(Kind.CRASH, after=1))
    ledger = played([UP, UP, Seen("Resetting"), Seen("Resetting"), UP, UP, Seen("Failed")], crashes)
    tale = ledger.tales["one"]
    assert (tale.useful, tale.wasted, ledger.below["blue"]) == (0, 8 + 8 * 2, 0)
    again = replace(ONE, failure=Failure(Kind.CRASH, after=1, times=2))
    tale = played([UP] * 6 + [Seen("Succeeded")], again).tales["one"]
    assert (tale.useful, tale.wasted) == (8 * 3, 8 * 2), "two crashes after a second each, in their place"


def report(ledger: Ledger, to_come: int = 0) -> Report:
    events = [Event(1, Fault.SICK, 0, 31), Event(2, Fault.KUEUE)]
    return Report(title="a <day>", ledger=ledger, seconds=6, time_scale=3600, events=events, to_come=to_come)


@pytest.mark.parametrize(
    ("looks", "failure", "lost"),
    [
        ([UP, Seen("Succeeded")], "none", []),
        ([UP, Seen("Failed")], "crash@1", []),
        ([UP, Seen("Succeeded")], "crash@1x2", []),
        ([UP, Seen("Failed")], "none", ["blue/one failed, and should have succeeded"]),
        ([UP, Seen("Succeeded")], "hang", ["blue/one succeeded, and should have failed"]),
        ([UP, Seen("Lost")], "none", ["blue/one lost, and should have succeeded"]),
        ([UP, WAITS], "none", ["blue/one is not over: Suspended"]),
    ],
)
def test_a_job_is_lost_that_does_not_end_as_the_trace_says(looks: list[Seen], failure: str, lost: list[str]) -> None:
    assert report(played(looks, replace(ONE, failure=Failure.parse(failure)))).lost == lost


def test_a_job_that_was_never_submitted_is_lost() -> None:
    assert report(played([UP, Seen("Succeeded")]), to_come=3).lost == ["3 jobs were never submitted"]


def of_a_day(outcome: Report, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit code of a day that came out so."""
    monkeypatch.setattr("lab.gameday.__main__.play", lambda *_: (outcome, datetime(2026, 11, 1, tzinfo=UTC)))
    return main(["--hours", "1", "--html", str(folder / "day.html")])


def test_a_day_on_which_a_team_waits_beyond_the_bound_ends_with_the_promise_that_it_broke(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No job of it need be lost: it may run in the end."""
    late = report(played([*[WAITS] * 102, UP, Seen("Succeeded")]))
    assert of_a_day(late, tmp_path, monkeypatch) == 1
    out, err = capsys.readouterr()
    promise = "a team has its quota again within 100 s: blue/one waited inside it for longer, up to 101 s"
    assert err == f"error: broken: {promise}\n"
    assert f"lost: none\n  promises that were broken: {promise}\n" in out
    assert f"Broken: {promise}." in (tmp_path / "day.html").read_text()


def test_a_day_on_which_a_job_is_lost_ends_with_the_promise_that_it_broke(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_a_day(report(played([UP, Seen("Failed")])), tmp_path, monkeypatch) == 1
    err = capsys.readouterr().err
    assert err == "error: broken: no job is lost: blue/one failed, and should have succeeded\n"


def test_a_day_breaks_no_promise_by_waits_within_the_bound_or_while_there_are_too_few_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_a_day(report(played([*[WAITS] * 100, UP, Seen("Succeeded")])), tmp_path, monkeypatch) == 0
    ledger = Ledger(QUOTAS, gpus=32, bound=100)
    ledger.submit(ONE, 0)
    for now in range(300):
        ledger.look(now, {"one": WAITS}, HERE, 0, 0)
    ledger.look(300, {"one": Seen("Succeeded")}, frozenset(), 32, 0)
    assert of_a_day(report(ledger), tmp_path, monkeypatch) == 0
    out, err = capsys.readouterr()
    assert out.count("promises that were broken: none\n") == 2
    assert err == ""


def test_a_day_that_is_interrupted_has_a_report_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, Ctrl-C would lose an hour of work."""
    day = quiet([ONE, replace(ONE, name="two", arrival=9e9)], monkeypatch)
    day._members = {"blue": SimpleNamespace(create=lambda _: None)}
    day._ends = [Event(0, Fault.SICK)]
    ended = []

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.gameday.run.time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
    monkeypatch.setattr(day, "_look", lambda: None)
    monkeypatch.setattr(day, "_breaking", SimpleNamespace(end=ended.append))
    day.go()
    assert ended == [Event(0, Fault.SICK)], "the node is well again"
    assert not day.is_whole
    found = replace(report(day.ledger), to_come=len(day.to_come), is_whole=day.is_whole)
    assert found.lost == []
    assert (
        "lost: none\n  promises that were broken: none\n  interrupted: 1 jobs were not over, and 1 had not arrived\n"
        in text(found)
    )


def test_the_report_has_the_days_figures() -> None:
    said = text(report(played([WAITS, STARTING, UP, UP, UP, Seen("Succeeded")])))
    assert "lost: none\n" in said
    assert "went wrong: 1 kueue restarted, 1 sick\n" in said
    assert "GPU hours of all nodes: 160\n" in said
    assert "used: 32 (20 %)\n" in said
    assert "idle: 128 (80 %)\n" in said
    assert "blue     16     1            32       0          2 s          1 s            0 s" in said


def test_who_made_place_is_told_apart_from_who_was_evicted_otherwise() -> None:
    """A job whose own pods crash loses its quota, too, where they are not replaced in time: no owner has it."""
    place, late = Seen("Suspended", evicted="Preempted"), Seen("Suspended", evicted="PodsReadyTimeout")
    said = text(report(played([UP, place, UP, late, UP, late, UP, Seen("Succeeded")])))
    assert "preempted for an owner, or a job that goes first: 1 times\n" in said
    assert "lost their quota otherwise: 2 times (PodsReadyTimeout)\n" in said


def test_what_is_wasted_is_told_as_a_part_of_what_is_used() -> None:
    said = text(report(played([STARTING, UP, UP, WAITS, UP, Seen("Succeeded")])))
    assert "used: 24 (15 %)\n" in said
    assert "or by jobs that failed by themselves: 16 (67 %)\n" in said


def test_the_page_is_one_file_without_scripts_and_shows_each_team() -> None:
    page = html(report(played([WAITS, STARTING, UP, UP, UP, Seen("Succeeded")])), datetime(2026, 11, 1, tzinfo=UTC))
    assert "a &lt;day&gt;" in page
    assert "<script" not in page
    assert "http://www.w3.org/2000/svg" in page.replace("https://", "")
    assert "default-src 'none'" in page
    assert "blue: 8 GPUs, hour" in page
    assert "Lost: none." in page
    jobs = page.partition("Jobs over time")[2].partition("</svg>")[0]
    assert re.findall(r'class="axis">([^<]+)<', jobs) == ["hour 0.0", "hour 1.5", "hour 3.0", "hour 4.5"], (
        "the hours of the day, as the events and the GPUs over it, and no date that never was"
    )


def test_a_seed_decides_the_day() -> None:
    size = Size()
    assert day(7, size.quotas, size.gpus) == day(7, size.quotas, size.gpus)
    assert day(7, size.quotas, size.gpus) != day(8, size.quotas, size.gpus)


def test_the_day_has_the_published_shape_and_can_be_read_again() -> None:
    quotas = {"blue": 4000, "red": 4000}
    lines = day(1, quotas, gpus=8000)
    count = len(lines)
    gpus = Counter(line.pods * line.gpus for line in lines)
    assert {size: round(100 * number / count) for size, number in gpus.items()} == {1: 70, 2: 10, 4: 15, 8: 5}
    fates = Counter(Failure.parse(line.failure).kind if "x" not in line.failure else "again" for line in lines)
    assert round(100 * (fates[Kind.NONE] + fates["again"]) / count) == 69
    assert (round(100 * fates[Kind.HANG] / count), round(100 * fates[Kind.CRASH] / count)) == (13, 17)
    assert 1800 < min(line.seconds for line in lines) < max(line.seconds for line in lines) == LONGEST
    worked = sum(line.pods * line.gpus * line.seconds for line in lines) / 3600
    assert 0.85 < worked / (8000 * 24) < 0.95
    assert parse(write(lines), "day.csv") == lines


def test_every_node_is_somebodys() -> None:
    for nodes in range(4, 20):
        size = Size(nodes)
        assert sum(size.quotas.values()) + 8 == size.gpus
        assert min(size.quotas.values()) >= 8


GIB = 1 << 30


def test_memory_of_a_process_is_counted_with_that_of_what_it_started() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(with_descendants([process.pid])) == 2
        process.communicate(b"\n")


def test_a_trace_of_ones_own_has_its_own_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "day.csv"
    file.write_text("arrival,team,pods,gpus,seconds\n0,blue,1,1,60\n")
    assert main(["--trace", str(file), "--hours", "8", "--print-trace"]) == 1
    assert capsys.readouterr().err == f"error: {file} sets the hours, so 8 cannot apply; leave one out\n"
    assert main(["--trace", str(file), "--print-trace"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"# {file}"


def test_who_prints_a_trace_gets_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "pages" / "day.html"
    assert main(["--hours", "1", "--print-trace", "--html", str(page)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "# seed 1, 6 nodes, 1 hours"
    assert not page.parent.exists()


def test_a_page_that_cannot_be_written_is_told_before_the_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.gameday.__main__.play", lambda *_: pytest.fail("it was played"))
    assert main(["--hours", "1", "--html", str(tmp_path)]) == 1
    assert "Is a directory" in capsys.readouterr().err


def test_what_does_not_fit_the_memory_is_told_what_does() -> None:
    free = BASE + 100 * NODE + 1000 * JOB
    with pytest.raises(TooLargeError) as caught:
        check(nodes=200, jobs=1000, available=free)
    assert "200 nodes and 1000 jobs take " in str(caught.value)
    assert "; what fits: 100 nodes with as many jobs, or " in str(caught.value)
    check(nodes=100, jobs=1000, available=free)
    with pytest.raises(TooLargeError, match=r"a cluster of any size takes .* GiB: end something else"):
        check(nodes=1, jobs=1, available=BASE)
    with pytest.raises(TooLargeError, match=r"what fits: 50 nodes with 500 jobs"):
        check(nodes=100_000, jobs=1_000_000, available=BASE + 50 * NODE + 500 * JOB)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodes", "3"], "error: 3 nodes are too few: 3 teams and the slack queue need 4"),
        (["--time-scale", "0"], "error: a time scale of 0 is invalid; write a number from 1 to 100000"),
        (["--hours", "0"], "error: no job arrives within 0 hours; write more"),
        *((["--hours", hours], "hours are no day; write a number up to 168") for hours in ("inf", "nan", "169")),
        (["--nodes", "400", "--hours", "24"], "error: 24 hours on 400 nodes have "),
        (["--nodes", "1001"], "error: 1001 nodes are too many: a stack has at most 1000"),
        (["--nodes", "1000"], "error: 1000 nodes and 0 jobs take "),
        (["--trace", "/nowhere.csv"], "No such file or directory: '/nowhere.csv'"),
    ],
)
def test_an_impossible_day_is_an_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.scenarios.memory.free_memory", lambda: 4 * GIB)
    assert main([*arguments, "--print-trace"]) == 1
    assert said in capsys.readouterr().err


def test_a_trace_of_ones_own_is_held_to_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "day.csv"
    file.write_text("arrival,team,pods,gpus,seconds\n0,blue,1,1,60\n9,blue,7,8,60\n")
    assert main(["--trace", str(file)]) == 1
    assert capsys.readouterr().err.endswith(
        "day.csv:3: 7 pods of 8 GPUs cannot run together on 6 nodes of 8 GPUs; request at most 6 such pods\n"
    )


@pytest.mark.parametrize(
    ("written", "exported", "given"),
    [
        ([], {}, "--seed=1"),
        (["NODES=8"], {}, "--seed=1 --nodes=8"),
        ([], {"NODES": "8", "HOURS": "2"}, "--seed=1 --nodes=8 --hours=2"),
        (["TRACE=my day.csv", "SEED=7"], {}, "--seed=7 --trace 'my day.csv'"),
        (["NODES=", "SEED=-2"], {}, "--seed=-2 --nodes=''"),
        (["HOURS=", "TIME_SCALE=60"], {}, "--seed=1 --hours='' --time-scale=60"),
    ],
)
def test_make_hands_over_what_was_chosen_however_it_was(
    written: list[str], exported: dict[str, str], given: str
) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "gameday", *written]
    own = {"PATH": os.environ["PATH"], **exported}
    printed = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True).stdout
    called = printed.replace("\\\n", " ").partition("-m lab.gameday ")[2].splitlines()[0]
    assert shlex.split(called) == shlex.split(given)


def test_gpus_over_time_are_stacked_by_team_and_what_is_lost_is_on_top() -> None:
    steps = [
        Usage(since=0, until=6, held={"blue": 4}, lost=0),
        Usage(since=6, until=24, held={"blue": 2, "red": 3}, lost=8),
    ]
    drawing = render("lab/gameday/usage.svg.j2", gpus=16, usage=usage(steps, classes(["blue", "red"]), 16))
    (columns,) = ElementTree.fromstring(drawing).findall("{*}g")  # noqa: S314
    assert columns.get("class") == "columns", "they have no frames, which would look like another team's pattern"
    bars = [
        (rect.get("class"), rect.get("width"), rect.get("height"), title.text)
        for rect in columns.findall("{*}rect")
        for title in rect.findall("{*}title")
    ]
    assert bars == [
        ("team team-0", "150.0", "55.0", "blue: 4 GPUs, hour 0.0 to 6.0"),
        ("free", "150.0", "165.0", "free: 12 GPUs, hour 0.0 to 6.0"),
        ("team team-0", "450.0", "27.5", "blue: 2 GPUs, hour 6.0 to 24.0"),
        ("team team-1", "450.0", "41.2", "red: 3 GPUs, hour 6.0 to 24.0"),
        ("free", "450.0", "41.2", "free: 3 GPUs, hour 6.0 to 24.0"),
        ("lost", "450.0", "110.0", "lost: 8 GPUs, hour 6.0 to 24.0"),
    ]
