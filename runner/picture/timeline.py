"""What was over time: the GPUs of each team, and each job, as workloads' own conditions tell.

Of a job that was evicted they remember the last run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from runner.picture.elements import element
from runner.picture.shapes import BOX, LEFT, ROW, WIDTH, box, drawing, label, of_team, text
from runner.picture.state import Job, Snapshot

MOST_JOBS: Final = 60
"""Rows of the latest jobs; more would be too many to read."""
_WIDTH: Final = WIDTH - LEFT - 130
_USAGE_ROWS: Final = 5
_MOMENTS: Final = 120


@dataclass(frozen=True, kw_only=True)
class Period:
    """The time that a drawing shows, of at least a minute, up to when it was looked."""

    begin: datetime
    end: datetime

    @classmethod
    def of(cls, snapshot: Snapshot) -> Period:
        """Return the time since the first of the jobs that are drawn was made: nothing is drawn of what is to come."""
        first = min([job.created for job in latest(snapshot.jobs)], default=snapshot.taken)
        return cls(begin=min(first, snapshot.taken - timedelta(minutes=1)), end=snapshot.taken)

    def moment(self, share: float) -> datetime:
        """Return when this share of it has passed."""
        return self.begin + share * (self.end - self.begin)

    def place(self, when: datetime) -> float:
        """Return where a moment stands in a drawing."""
        return LEFT + _WIDTH * min(1.0, max(0.0, (when - self.begin) / (self.end - self.begin)))

    def axis(self, row: int, told: Callable[[datetime], str] | None = None) -> list[Element]:
        """Return the times beneath so many rows. told: how a time is told, where not by date and clock."""
        form = "%d %b %H:%M" if self.end - self.begin > timedelta(minutes=10) else "%H:%M:%S"
        moments = [self.moment(part / 4) for part in range(4)]
        return [
            element(
                "text",
                when.strftime(form) if told is None else told(when),
                x=round(self.place(when), 1),
                y=row * ROW + 14,
                class_="axis",
            )
            for when in moments
        ]


def usage(snapshot: Snapshot, order: Mapping[str, int]) -> Element:
    """Draw how many GPUs the jobs of each team had over time, one team above the other, and how many there are now."""
    if not snapshot.jobs:
        return drawing("GPUs over time", [], 0)
    period, there = Period.of(snapshot), sum(node.gpus for node in snapshot.nodes)
    columns = [_had(snapshot.jobs, order, period.moment((number + 0.5) / _MOMENTS)) for number in range(_MOMENTS)]
    most = max([1, there, *(sum(column) for column in columns)])
    scale = _USAGE_ROWS * ROW / most
    rows = [
        box(
            of_team(order, team),
            f"{team} had {gpus} GPUs from {period.moment(begin / _MOMENTS):%d %b %H:%M:%S} on",
            x=period.place(period.moment(begin / _MOMENTS)),
            y=(most - below - gpus) * scale,
            width=(end - begin) * _WIDTH / _MOMENTS,
            height=gpus * scale,
        )
        for number, team in enumerate(order)
        for begin, end, below, gpus in _runs([(sum(column[:number]), column[number]) for column in columns])
    ]
    top = (most - there) * scale
    rows += [
        box("quota", f"{there} GPUs", x=LEFT, y=top, width=_WIDTH, height=there * scale),
        label("GPUs given to jobs", 0),
        text(f"of {there} GPUs", LEFT + _WIDTH + 8, top - 4),
    ]
    return drawing("GPUs over time", [*rows, *period.axis(_USAGE_ROWS)], _USAGE_ROWS + 1)


def jobs(snapshot: Snapshot, order: Mapping[str, int], told: Callable[[datetime], str] | None = None) -> Element:
    """Draw when each job waited and ran. told: how a time is told, where not by date and clock."""
    shown, period = latest(snapshot.jobs), Period.of(snapshot)
    rows: list[Element] = []
    for number, job in enumerate(shown):
        y, end = number * ROW, job.ended or snapshot.taken
        rows.append(label(f"{job.namespace}/{job.name}", y))
        start = job.started or end
        queued = job.queued or start
        spans = [
            ("earlier", job.created, queued, "waited and ran before, for"),
            ("waiting", queued, start, "waited"),
            (of_team(order, job.namespace), start, end, "ran"),
        ]
        for kind, since, until, what in spans:
            if until > since:
                title = f"{job.namespace}/{job.name} {what} {duration(until - since)}, {job.gpus} GPUs"
                begin, is_thin = period.place(since), kind in ("earlier", "waiting")
                width, height = max(1.0, period.place(until) - begin), 4 if is_thin else BOX - 2
                rows.append(box(kind, title, x=begin, y=y + (10 if is_thin else 4), width=width, height=height))
        state = "ended" if job.ended else "runs" if job.started else "waits"
        rows.append(text(f"{job.gpus} GPUs, {state}", LEFT + _WIDTH + 8, y))
    return drawing("Jobs over time", [*rows, *period.axis(len(shown), told)], len(shown) + 1 if shown else 0)


def latest(found: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs that are drawn: the last that came, by team."""
    last = sorted(found, key=lambda job: job.created)[-MOST_JOBS:]
    return sorted(last, key=lambda job: (job.namespace, job.created, job.name))


def duration(span: timedelta) -> str:
    """Return a span of time in words, to the minute."""
    minutes = int(span.total_seconds() // 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return " ".join(f"{value} {unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if value) or (
        "less than a minute"
    )


def _had(found: Sequence[Job], order: Mapping[str, int], when: datetime) -> list[int]:
    """Return how many GPUs the jobs of each team had at a moment."""
    had = dict.fromkeys(order, 0)
    for job in found:
        if job.started is not None and job.started <= when and (job.ended is None or when < job.ended):
            had[job.namespace] += job.gpus
    return list(had.values())


def _runs(column_by_column: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield first column, the one behind the last, what lies below, and the GPUs, of each run of equal columns."""
    end = 0
    for (below, gpus), run in groupby(column_by_column):
        begin, end = end, end + len(list(run))
        if gpus:
            yield begin, end, below, gpus
