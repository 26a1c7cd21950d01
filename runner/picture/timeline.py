"""The history: the GPUs of each team, and each job, from the conditions of workloads.

For an evicted job, they contain only the last run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, NamedTuple

from runner.picture.charts import BOX, Box, Row
from runner.picture.state import Job, Snapshot

MOST_JOBS: Final = 60
"""Number of rows for the latest jobs. More would be too many to read."""
_SPAN: Final = 600
"""Width of the period in pixels, as in `parts.j2`."""
_MOMENTS: Final = 120


@dataclass(frozen=True, kw_only=True)
class Period:
    """The time of a drawing: at least a minute, until the snapshot."""

    begin: datetime
    end: datetime

    @classmethod
    def of(cls, snapshot: Snapshot) -> Period:
        """Return the time since the oldest job in the drawing was created. The drawing does not show the future."""
        first = min([job.created for job in latest(snapshot.jobs)], default=snapshot.taken)
        return cls(begin=min(first, snapshot.taken - timedelta(minutes=1)), end=snapshot.taken)

    def moment(self, share: float) -> datetime:
        """Return the time at this share of the period."""
        return self.begin + share * (self.end - self.begin)

    def share(self, when: datetime) -> float:
        """Return the share of the period at a time."""
        return min(1.0, max(0.0, (when - self.begin) / (self.end - self.begin)))

    def times(self, told: Callable[[datetime], str] | None = None) -> list[str]:
        """Return the time at each quarter. told: formats a time, if not as date and clock."""
        form = "%d %b %H:%M" if self.end - self.begin > timedelta(minutes=10) else "%H:%M:%S"
        moments = [self.moment(part / 4) for part in range(4)]
        return [when.strftime(form) if told is None else told(when) for when in moments]


class Usage(NamedTuple):
    """The GPUs of each team over time. most: the height of the drawing, in GPUs. times: of the axis.

    runs: class, title, begin, end, GPUs below, GPUs; begin and end in the unit of the span.
    """

    runs: Sequence[tuple[str, str, float, float, float, float]]
    span: float
    most: float
    times: Sequence[str]


class Jobs(NamedTuple):
    """The latest jobs. times: of the axis."""

    title: str
    rows: Sequence[Row]
    times: Sequence[str]


def usage(snapshot: Snapshot, class_of: Mapping[str, str]) -> Usage:
    """Return how many GPUs the jobs of each team had over time, one team above the other."""
    period, there = Period.of(snapshot), sum(node.gpus for node in snapshot.nodes)
    columns = [_had(snapshot.jobs, class_of, period.moment((number + 0.5) / _MOMENTS)) for number in range(_MOMENTS)]
    runs = []
    for number, (team, kind) in enumerate(class_of.items()):
        for begin, end, below, gpus in _runs([(sum(column[:number]), column[number]) for column in columns]):
            title = f"{team} had {gpus} GPUs from {period.moment(begin / _MOMENTS):%d %b %H:%M:%S} on"
            runs.append((kind, title, begin, end, below, gpus))
    return Usage(runs, _MOMENTS, max([1, there, *map(sum, columns)]), period.times())


def jobs(snapshot: Snapshot, class_of: Mapping[str, str], told: Callable[[datetime], str] | None = None) -> Jobs:
    """Return when each job waited and ran. told: formats a time, if not as date and clock."""
    shown, count, period = latest(snapshot.jobs), len(snapshot.jobs), Period.of(snapshot)
    title = "Jobs" if len(shown) == count else f"Jobs, the last {len(shown)} of {count}"
    return Jobs(title, [_row(job, class_of[job.namespace], period) for job in shown], period.times(told))


def _row(job: Job, kind: str, period: Period) -> Row:
    name, end = f"{job.namespace}/{job.name}", job.ended or period.end
    start = job.started or end
    queued = job.queued or start
    spans = [
        ("earlier", 4, job.created, queued, "waited and ran before, for"),
        ("waiting", 4, queued, start, "waited"),
        (kind, BOX - 2, start, end, "ran"),
    ]
    boxes = []
    for each, height, since, until, what in spans:
        if until > since:
            title = f"{name} {what} {duration(until - since)}, {job.gpus} GPUs"
            x, width = _SPAN * period.share(since), _SPAN * (period.share(until) - period.share(since))
            boxes.append(Box(each, title, x, max(1.0, width), height))
    state = "ended" if job.ended else "runs" if job.started else "waits"
    return Row(name, boxes, f"{job.gpus} GPUs, {state}", _SPAN + 8)


def latest(found: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs in the drawing: the latest, sorted by team."""
    last = sorted(found, key=lambda job: job.created)[-MOST_JOBS:]
    return sorted(last, key=lambda job: (job.namespace, job.created, job.name))


def duration(span: timedelta) -> str:
    """Return a duration in words, to the minute."""
    minutes = int(span.total_seconds() // 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return " ".join(f"{value} {unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if value) or (
        "less than a minute"
    )


def _had(found: Sequence[Job], teams: Iterable[str], when: datetime) -> list[int]:
    """Return how many GPUs the jobs of each team had at one time."""
    had = dict.fromkeys(teams, 0)
    for job in found:
        if job.started is not None and job.started <= when and (job.ended is None or when < job.ended):
            had[job.namespace] += job.gpus
    return list(had.values())


def _runs(column_by_column: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield for each run of equal columns: first column, column after the last, GPUs below it, and its GPUs."""
    end = 0
    for (below, gpus), run in groupby(column_by_column):
        begin, end = end, end + len(list(run))
        if gpus:
            yield begin, end, below, gpus
