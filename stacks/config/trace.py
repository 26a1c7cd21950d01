"""Traces: jobs of given size, length, priority and failure, one a line of a CSV file (docs/workloads/synthetic.md)."""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from components import names
from components.tenancy import bounds
from components.workloads.synthetic import FAILURES, Failure, Kind, SyntheticJob
from stacks.config.errors import cut, instead, listed
from stacks.settings.limits import MOST_GPUS

PRIORITIES: Final = (names.LOW_PRIORITY, names.DEFAULT_PRIORITY, names.HIGH_PRIORITY)
MOST_JOBS: Final = 100_000
"""Maximum number of lines of a trace."""
MOST_CRASHES: Final = 1000
_LONGEST: Final = 4 * 7 * 24 * 3600
_LATEST: Final = 366 * 24 * 3600


class TraceError(ValueError):
    """A trace is invalid. The message names the file, the line, the problem and the allowed values."""

    def __init__(self, source: str, line: int, wrong: str) -> None:
        super().__init__(f"{source}:{line}: {wrong}")


def _failure(text: str) -> str:
    Failure.parse(text)
    return text


class TraceLine(BaseModel):
    """A line of a trace: a job, as it was recorded. Numbers of seconds count from the beginning of the trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arrival: Annotated[float, Field(ge=0, le=_LATEST, allow_inf_nan=False)]
    """Second of its submission, not earlier than the line above."""
    team: str
    """The team that submits it."""
    pods: Annotated[int, Field(ge=1, le=10_000)]
    """How many pods start together."""
    gpus: Annotated[int, Field(ge=1, le=MOST_GPUS)]
    """GPUs of each pod."""
    seconds: Annotated[int, Field(ge=1, le=_LONGEST)]
    """How many seconds it runs; one that hangs is ended after as many."""
    priority: str = names.DEFAULT_PRIORITY
    """Priority class of its pods."""
    failure: Annotated[str, AfterValidator(_failure)] = str(Kind.NONE)
    """How it fails: none, hang, crash@<second>, crash@<second>x<times>."""


COLUMNS: Final = tuple(TraceLine.model_fields)
_WANTED: Final[Mapping[str, str]] = {
    "arrival": f"a number of seconds from 0 to {_LATEST}",
    "pods": "a whole number from 1 to 10000",
    "gpus": f"a whole number from 1 to {MOST_GPUS}",
    "seconds": f"a whole number from 1 to {_LONGEST}",
    "failure": FAILURES,
}


@dataclass(frozen=True, kw_only=True)
class Room:
    """What a trace is to run in. teams: their names. nodes, gpus: how many nodes, and GPUs of each."""

    teams: Sequence[str]
    nodes: int
    gpus: int


def read(file: Path, room: Room | None = None) -> list[TraceLine]:
    """Return the jobs of a file, in order. room: the teams and nodes to check against, None for no check.

    Raises TraceError for the first invalid line, and OSError if the file cannot be read.
    """
    return parse(file.read_text(encoding="utf-8-sig", errors="replace"), str(file), room)


def parse(text: str, source: str, room: Room | None = None) -> list[TraceLine]:
    """Return the jobs of a text. source: what to call it in errors. Raises as `read` does."""
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        written = (row for row in rows if any(map(str.strip, row)) and not row[0].lstrip().startswith("#"))
        header = [name.strip() for name in next(written, [])]
        _check_header(header, source, rows.line_num or 1)
        found: list[TraceLine] = []
        of_teams = Counter[str]()
        for row in written:
            found.append(_line(header, row, source, rows.line_num))
            of_teams[found[-1].team] += 1
            for wrong in _wrong(found, of_teams, room):
                raise TraceError(source, rows.line_num, wrong)
    except csv.Error as error:
        raise TraceError(source, rows.line_num, f"this is not a line of CSV: {error}") from None
    if not found:
        raise TraceError(source, rows.line_num or 1, "there are no jobs; write at least one line under the header")
    return found


def write(jobs: Iterable[TraceLine], comments: Sequence[str] = ()) -> str:
    """Return jobs as the text of a trace. comments: lines under the header."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    text.writelines(f"# {line}\n" for line in comments)
    rows.writerows([_exact(value) for _, value in job] for job in jobs)
    return text.getvalue()


def jobs(lines: Sequence[TraceLine], name: str, time_scale: float = 1) -> list[SyntheticJob]:
    """Return a trace's jobs with names of their own. time_scale: seconds of the trace that pass in one."""
    return [
        SyntheticJob(
            name=f"{name}-{number}",
            team=line.team,
            arrival=line.arrival / time_scale,
            pods=line.pods,
            gpus=line.gpus,
            seconds=_shorter(line.seconds, time_scale),
            priority_class=line.priority,
            failure=_sooner(Failure.parse(line.failure), time_scale),
        )
        for number, line in enumerate(lines)
    ]


def _exact(value: object) -> object:
    """Return a value as it is read again."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else value


def _shorter(seconds: int, time_scale: float) -> int:
    return max(1, math.ceil(seconds / time_scale))


def _sooner(failure: Failure, time_scale: float) -> Failure:
    return Failure(failure.kind, _shorter(failure.after, time_scale) if failure.after else 0, failure.times)


def _check_header(header: Sequence[str], source: str, number: int) -> None:
    required = [name for name, info in TraceLine.model_fields.items() if info.is_required()]
    for name in header:
        if name not in COLUMNS:
            hint = instead(name, COLUMNS, f"there are {listed(COLUMNS)}")
            raise TraceError(source, number, f"there is no column {cut(repr(name))}; {hint}")
    if missing := [name for name in required if name not in header]:
        raise TraceError(source, number, f"the header lacks {listed(missing)}; it has {listed(COLUMNS)}")
    if len(set(header)) < len(header):
        raise TraceError(source, number, "duplicate column; name each column once")


def _line(header: Sequence[str], row: Sequence[str], source: str, number: int) -> TraceLine:
    if len(row) != len(header):
        raise TraceError(source, number, f"{len(row)} values for {len(header)} columns; write one value a column")
    given: dict[str, Any] = {name: value.strip() for name, value in zip(header, row, strict=True) if value.strip()}
    try:
        return TraceLine.model_validate(given)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        value = f"is {cut(repr(given[name]))}" if name in given else "is empty"
        raise TraceError(source, number, f"{name} {value}; write {_WANTED.get(name, 'a text')}") from None


def _wrong(found: Sequence[TraceLine], of_teams: Mapping[str, int], room: Room | None) -> Iterator[str]:
    """Yield the errors of the last line. of_teams: number of jobs of each team so far."""
    line = found[-1]
    if len(found) > MOST_JOBS:
        yield f"the trace has more than {MOST_JOBS} jobs; shorten it"
    if len(found) > 1 and line.arrival < (before := found[-2].arrival):
        yield f"arrival {line.arrival:g} is earlier than {before:g} in the line above; sort the lines by arrival"
    if line.priority not in PRIORITIES:
        hint = instead(line.priority, PRIORITIES, f"write {listed(PRIORITIES)}")
        yield f"unknown priority {line.priority!r}; {hint}"
    failure = Failure.parse(line.failure)
    if failure.after >= line.seconds:
        yield f"the job crashes after {failure.after} s but runs for {line.seconds} s; make it crash before its end"
    if failure.times > MOST_CRASHES:
        yield f"the job crashes {failure.times} times; write at most {MOST_CRASHES}"
    if room is None:
        return
    if of_teams[line.team] > bounds.MOST_JOBS:
        yield (
            f"team {cut(line.team)} has more than {bounds.MOST_JOBS} jobs, the limit of its namespace, which includes "
            "finished jobs; shorten the trace, or spread it over teams"
        )
    if line.team not in room.teams:
        yield f"there is no team {line.team!r}; {instead(line.team, room.teams, f'there are {listed(room.teams)}')}"
    if line.gpus > room.gpus:
        yield f"a pod requests {line.gpus} GPUs, a node has {room.gpus}; request at most {room.gpus}"
    elif line.pods > (most := room.nodes * (room.gpus // line.gpus)):
        yield (
            f"{line.pods} pods of {line.gpus} GPUs cannot run together on {room.nodes} nodes of {room.gpus} GPUs; "
            f"request at most {most} such pods"
        )
