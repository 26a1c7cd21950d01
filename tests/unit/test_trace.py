"""Traces: the fields of a line, and that each error is reported once, with its file and line."""

import re
from pathlib import Path

import pytest

from components.workloads.synthetic import Failure, Kind, SyntheticJob
from stacks.config.trace import COLUMNS, MOST_JOBS, Room, TraceError, TraceLine, jobs, parse, read, write
from tests.unit.tables import table

ROOT = Path(__file__).resolve().parents[2]
HEADER = "arrival,team,pods,gpus,seconds,priority,failure\n"
ROOM = Room(teams=["blue", "red"], nodes=3, gpus=8)
DAY = HEADER + "0,blue,2,4,600,high-priority,crash@30x2\n# lunch\n\n12.5,red,1,8,60,,\n"


def test_a_line_is_a_job() -> None:
    assert parse(DAY, "day.csv", ROOM) == [
        TraceLine(arrival=0, team="blue", pods=2, gpus=4, seconds=600, priority="high-priority", failure="crash@30x2"),
        TraceLine(arrival=12.5, team="red", pods=1, gpus=8, seconds=60),
    ]


def test_columns_stand_in_any_order_and_some_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("team,seconds,gpus,pods,arrival\nblue,60,1,1,0\n")
    assert read(file) == [TraceLine(arrival=0, team="blue", pods=1, gpus=1, seconds=60)]


def test_the_example_is_that_of_the_page() -> None:
    text = (ROOT / "reference" / "examples" / "trace.csv").read_text()
    assert text in (ROOT / "docs" / "workloads" / "synthetic.md").read_text()
    assert [line.failure for line in parse(text, "trace.csv", ROOM)] == ["none", "crash@60", "hang"]


def test_comments_empty_lines_and_blanks_are_passed_over_wherever_they_are() -> None:
    text = "# my day\n\n arrival , team,pods,gpus,seconds\n  # lunch\n   \n,,,,\n 0 , blue ,1,1,60\n"
    assert parse(text, "day.csv", ROOM) == [TraceLine(arrival=0, team="blue", pods=1, gpus=1, seconds=60)]


def test_a_long_day_keeps_its_seconds() -> None:
    times = (0.0, 86399.96, 1234567.25, 1234568.75)
    lines = [TraceLine(arrival=at, team="blue", pods=1, gpus=1, seconds=9) for at in times]
    assert parse(write(lines), "day.csv") == lines
    assert write(lines).splitlines()[3].startswith("1234567.25,blue")


def test_what_is_written_is_read_again() -> None:
    lines = parse(DAY, "day.csv")
    assert write(lines, ["seed 1"]).startswith(HEADER + "# seed 1\n0,blue,2,4,600,high-priority,crash@30x2\n")
    assert parse(write(lines), "day.csv") == lines
    assert ",".join(COLUMNS) + "\n" == HEADER


def test_time_may_pass_faster() -> None:
    first, second = jobs(parse(DAY, "day.csv"), "load", time_scale=25)
    assert first == SyntheticJob(
        name="load-0",
        team="blue",
        arrival=0,
        pods=2,
        gpus=4,
        seconds=24,
        priority_class="high-priority",
        failure=Failure(Kind.CRASH, after=2, times=2),
    )
    assert (second.name, second.arrival, second.seconds) == ("load-1", 0.5, 3)


MISTAKES = [
    ("arrival,tema,pods,gpus,seconds\n0,blue,1,1,1\n", "1: there is no column 'tema'; did you mean team?"),
    ("arrival,team,pods,gpus\n0,blue,1,1\n", "1: the header lacks seconds; it has arrival, team, pods, gpus, "),
    ("arrival,team,pods,gpus,seconds,pods\n", "1: duplicate column; name each column once"),
    ("", "1: the header lacks arrival, team, pods, gpus, seconds; "),
    (HEADER, "1: there are no jobs; write at least one line under the header"),
    (HEADER + "0,blue,1,1\n", "2: 4 values for 7 columns; write one value a column"),
    (HEADER + '0,blue,1,1,60,"a"b,none\n', "2: this is not a line of CSV: "),
    (
        HEADER + "5,blue,1,1,9,,\n# noon\n4,blue,1,1,9,,\n",
        "4: arrival 4 is earlier than 5 in the line above; sort the lines by arrival",
    ),
    (HEADER + "-1,blue,1,1,9,,\n", "2: arrival is '-1'; write a number of seconds from 0 to 31622400"),
    (HEADER + "nan,blue,1,1,9,,\n", "2: arrival is 'nan'; write a number of seconds from 0 to 31622400"),
    (HEADER + "0,bleu,1,1,9,,\n", "2: there is no team 'bleu'; did you mean blue?"),
    (HEADER + "0,,1,1,9,,\n", "2: team is empty; write a text"),
    (HEADER + "0,blue,1,0,9,,\n", "2: gpus is '0'; write a whole number from 1 to 16"),
    (HEADER + "0,blue,1.5,1,9,,\n", "2: pods is '1.5'; write a whole number from 1 to 10000"),
    (HEADER + "0,blue,0,1,9,,\n", "2: pods is '0'; write a whole number from 1 to 10000"),
    (HEADER + "0,blue,1,1,0,,\n", "2: seconds is '0'; write a whole number from 1 to "),
    (HEADER + "0,blue,1,1,9,hihg-priority,\n", "2: unknown priority 'hihg-priority'; did you mean high-priority?"),
    (HEADER + "0,blue,1,1,9,,sometimes\n", "2: failure is 'sometimes'; write none, hang, crash@<second>, "),
    (HEADER + "0,blue,1,1,9,,crash@3x0\n", "2: failure is 'crash@3x0'; write none, hang, crash@<second>, "),
    (HEADER + "0,blue,1,1,9,,crash@9\n", "2: the job crashes after 9 s but runs for 9 s; make it crash before its end"),
    (HEADER + "1e9,blue,1,1,9,,\n", "2: arrival is '1e9'; write a number of seconds from 0 to 31622400"),
    (HEADER + "0,blue,1,1,9,,crash@3x1001\n", "2: the job crashes 1001 times; write at most 1000"),
    (
        HEADER + "0,red,1,1,9,,\n" + "0,blue,1,1,9,,\n" * 1001,
        "1003: team blue has more than 1000 jobs, the limit of its namespace, which includes finished jobs",
    ),
    ("# my day\narrival,tema,pods,gpus,seconds\n", "2: there is no column 'tema'; did you mean team?"),
    (HEADER + "0,blue,1,9,9,,\n", "2: a pod requests 9 GPUs, a node has 8; request at most 8"),
    (
        HEADER + "0,blue,4,5,9,,\n",
        "2: 4 pods of 5 GPUs cannot run together on 3 nodes of 8 GPUs; request at most 3 such pods",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said[:40] for _, said in MISTAKES])
def test_a_mistake_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(TraceError) as caught:
        parse(text, "day.csv", ROOM)
    assert str(caught.value).startswith(f"day.csv:{said}")


@pytest.mark.parametrize(
    ("line", "refused"),
    table("trace", "bounds"),
)
def test_a_line_has_bounds(line: str, refused: str | None) -> None:
    if refused is None:
        assert len(parse(f"{HEADER}{line}\n", "day.csv")) == 1
    else:
        with pytest.raises(TraceError, match=rf"^day\.csv:2: {re.escape(refused)}$"):
            parse(f"{HEADER}{line}\n", "day.csv")


@pytest.mark.parametrize(("teams", "said"), [(["blue", "red"], "there are blue, red"), ([], "there are none")])
def test_who_there_is_is_told_where_no_name_is_near(teams: list[str], said: str) -> None:
    with pytest.raises(TraceError, match=f"^day.csv:2: there is no team 'xyz'; {said}$"):
        parse(f"{HEADER}0,xyz,1,1,9,,\n", "day.csv", Room(teams=teams, nodes=1, gpus=8))


def test_time_that_passes_faster_leaves_a_second_of_everything() -> None:
    (job,) = jobs(parse(f"{HEADER}10,blue,1,1,30,,crash@3x2\n", "day.csv"), "load", time_scale=100)
    assert (job.arrival, job.seconds, job.failure) == (0.1, 1, Failure(Kind.CRASH, after=1, times=2))
    (job,) = jobs(parse(f"{HEADER}10,blue,1,1,30,,crash@0\n", "day.csv"), "load")
    assert (job.seconds, job.failure) == (30, Failure(Kind.CRASH, after=0, times=0))


def test_a_gang_of_all_the_nodes_is_let_through() -> None:
    assert len(parse(HEADER + "0,blue,3,8,9,,\n1,blue,24,1,9,,\n", "day.csv", ROOM)) == 2


def test_a_trace_has_an_end() -> None:
    lines = "".join(f"0,team-{number // 1000},1,1,9,,\n" for number in range(MOST_JOBS + 1))
    with pytest.raises(TraceError, match=f"day.csv:{MOST_JOBS + 2}: the trace has more than {MOST_JOBS} jobs; shorten"):
        parse(HEADER + lines, "day.csv")
