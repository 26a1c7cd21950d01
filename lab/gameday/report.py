"""The report of a game day for a manager: a few figures, as text and as one HTML page."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from lab.gameday.drawing import Usage, usage
from lab.gameday.ledger import PREEMPTED, Ledger, Phase, Tale
from lab.soak.trace import Event
from runner.picture import charts, timeline
from runner.picture.rendering import render
from runner.picture.state import Job, Snapshot

_COLUMNS = 160
"""Columns of the picture of GPUs over time; each shows an average."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of a day.

    title: description.
    seconds: its duration.
    time_scale: seconds of the day in one second of the clock.
    events: faults, at seconds of the clock.
    to_come: jobs that were never submitted.
    refused: submissions that the API server first rejected.
    is_whole: whether the simulation ran to its end; otherwise unfinished jobs are not lost.
    """

    title: str
    ledger: Ledger
    seconds: float
    time_scale: float
    events: Sequence[Event]
    to_come: int = 0
    refused: int = 0
    is_whole: bool = True

    @property
    def lost(self) -> list[str]:
        """The jobs that did not end as in the trace, with the reason."""
        found = []
        for tale in self.ledger.tales.values():
            wanted = Phase.SUCCEEDED if tale.job.failure.succeeds else Phase.FAILED
            if tale.ended is None and not self.is_whole:
                continue
            if tale.ended is None:
                found.append(f"{_name(tale)} is not over: {tale.phase or 'no phase'}")
            elif tale.phase != wanted:
                found.append(f"{_name(tale)} {tale.phase.lower()}, and should have {wanted.lower()}")
        is_left = self.to_come and self.is_whole
        return [*found, *([f"{self.to_come} jobs were never submitted"] if is_left else [])]

    @property
    def broken(self) -> list[str]:
        """The broken promises, each with its evidence. Too few healthy nodes break no promise."""
        book, found = self.ledger, [f"no job is lost: {each}" for each in self.lost]
        if book.judge.late:
            jobs = ", ".join(sorted(_name(book.tales[name]) for name in book.judge.late))
            found.append(
                f"a team has its quota again within {book.bound:.0f} s: {jobs} waited inside it for longer, up to "
                f"{book.judge.worst:.0f} s"
            )
        return found

    def hours(self, gpu_seconds: float) -> float:
        """Return GPU hours of the day for GPU seconds of the clock."""
        return gpu_seconds * self.time_scale / 3600

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures of the whole day, each with its name."""
        book = self.ledger
        tales = list(book.tales.values())
        phases = Counter(tale.phase for tale in tales)
        wasted = sum(tale.wasted for tale in tales)
        evictions = sum((tale.evictions for tale in tales), Counter[str]())
        out = max(0.0, book.offered - book.used - book.idle)
        cut = f"{len(book.open)} jobs were not over, and {self.to_come} had not arrived"
        return [
            ("lost", "; ".join(self.lost) or "none"),
            ("promises that were broken", "; ".join(self.broken) or "none"),
            *([] if self.is_whole else [("interrupted", cut)]),
            ("jobs", f"{len(tales)}: {phases[Phase.SUCCEEDED]} succeeded, {phases[Phase.FAILED]} failed"),
            ("jobs that were to fail by themselves", str(sum(not tale.job.failure.succeeds for tale in tales))),
            ("went wrong", _counted(self.events)),
            ("preempted for an owner, or a job that goes first", f"{evictions.pop(PREEMPTED, 0)} times"),
            ("lost their quota otherwise", _reasons(evictions)),
            ("submissions refused, and made again", str(self.refused)),
            ("GPU hours of all nodes", f"{self.hours(book.offered):.0f}"),
            ("used", self._share(book.used, book.offered)),
            ("wasted, of those used: done again, or by jobs that failed by themselves", self._share(wasted, book.used)),
            ("idle", self._share(book.idle, book.offered)),
            ("idle on nodes that were lost", self._share(out, book.offered)),
            ("reclaim of lent GPUs", _times(book.reclaims)),
            ("recovery from a lost node", _times(book.recoveries)),
            (
                "longest wait of a job inside its team's quota",
                f"{book.judge.worst:.0f} s, of {book.bound:.0f} s that a single fault may take",
            ),
        ]

    def teams(self) -> list[tuple[str, ...]]:
        """Return a row for each team; see `HEADER`."""
        book = self.ledger
        rows: list[tuple[str, ...]] = []
        for team, quota in book.quotas.items():
            own = [tale for tale in book.tales.values() if tale.job.team == team]
            useful, wasted = sum(tale.useful for tale in own), sum(tale.wasted for tale in own)
            waits = [tale.started - tale.submitted for tale in own if tale.started is not None]
            rows.append(
                (
                    team,
                    str(quota),
                    str(len(own)),
                    f"{self.hours(useful):.0f}",
                    f"{self.hours(wasted):.0f}",
                    f"{median(waits):.0f} s" if waits else "-",
                    f"{book.below[team]:.0f} s",
                    f"{book.scarce[team]:.0f} s",
                )
            )
        return rows

    def _share(self, gpu_seconds: float, whole: float) -> str:
        return f"{self.hours(gpu_seconds):.0f} ({100 * gpu_seconds / max(1.0, whole):.0f} %)"


HEADER = ("team", "quota", "jobs", "GPU h useful", "wasted", "median wait", "below quota", "too few nodes")
NOTES = tuple(
    " ".join(note.split())
    for note in (
        """GPU hours are those of the day. All other times are of the clock: grace periods, pauses between attempts and
        the controllers' own work do not pass faster with the day, and weigh that much more in what is wasted.""",
        """Below quota: how long a team had less than its quota while it had work that fits into it; too few nodes: the
        part of that in which the healthy nodes had less than all quotas that were wanted.""",
        """Reclaim: from when an owner's job could have run inside its quota, but for borrowers, until all of its pods
        ran. Recovery: from when a job's node was marked, if the job had to leave it, until all of its
        pods ran again.""",
    )
)


def text(report: Report) -> str:
    """Return the report for a terminal."""
    rows = [HEADER, *report.teams()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [report.title, *(f"  {name}: {value}" for name, value in report.summary()), ""]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  " + "  ".join([first.strip().ljust(widths[0]), *others]))
    return "\n".join([*lines, "", *(f"  {note}" for note in NOTES)])


def html(report: Report, began: datetime) -> str:
    """Return the report as one HTML page without scripts and network. began: the start of the day."""
    class_of, gpus = charts.classes(report.ledger.quotas), report.ledger.gpus

    def hour(when: datetime) -> str:
        return f"hour {(when - began).total_seconds() / 3600:.1f}"

    return render(
        "lab/gameday/report.html.j2",
        title=report.title,
        report=report,
        class_of=class_of,
        gpus=gpus,
        usage=usage(_usage(report), class_of, gpus),
        header=HEADER,
        jobs=timeline.jobs(_snapshot(report, began), class_of, hour),
        events=_events(report),
        notes=NOTES,
    )


def _name(tale: Tale) -> str:
    return f"{tale.job.team}/{tale.job.name}"


def _counted(events: Sequence[Event]) -> str:
    counts = Counter(str(event.fault) for event in events)
    return ", ".join(f"{count} {fault}" for fault, count in sorted(counts.items())) or "none"


def _reasons(evictions: Counter[str]) -> str:
    told = [f"{count} times ({reason or 'no reason told'})" for reason, count in sorted(evictions.items())]
    return ", ".join(told) or "never"


def _times(found: Sequence[float]) -> str:
    if not found:
        return "none"
    return f"{len(found)} times, median {median(found):.0f} s, worst {max(found):.0f} s"


def _usage(report: Report) -> list[Usage]:
    """Return the GPUs of each team in equal parts of the day, in hours."""
    samples, book = report.ledger.samples, report.ledger
    if not samples:
        return []
    begin, span = samples[0].at, max(1e-9, samples[-1].at - samples[0].at)
    parts: dict[int, list[int]] = {}
    for index, sample in enumerate(samples):
        parts.setdefault(min(_COLUMNS - 1, int(_COLUMNS * (sample.at - begin) / span)), []).append(index)
    found: list[Usage] = []
    for part, indices in sorted(parts.items()):
        within = [samples[index] for index in indices]
        held = {team: sum(each.held[team] for each in within) / len(within) for team in book.quotas}
        lost = sum(min(book.gpus - each.well, book.gpus - sum(each.held.values())) for each in within) / len(within)
        since = found[-1].until if found else 0.0
        until = report.time_scale * span * (part + 1) / _COLUMNS / 3600
        found.append(Usage(since=since, until=until, held=held, lost=lost))
    return found


def _snapshot(report: Report, began: datetime) -> Snapshot:
    """Return the day's jobs in the form of the status page, at times of the day."""

    def when(seconds: float) -> datetime:
        return began.astimezone(UTC) + timedelta(seconds=seconds * report.time_scale)

    jobs = [
        Job(
            namespace=tale.job.team,
            name=tale.job.name,
            gpus=tale.job.pods * tale.job.gpus,
            created=when(tale.submitted),
            queued=when(tale.submitted),
            started=when(tale.started) if tale.started is not None else None,
            ended=when(tale.ended) if tale.ended is not None else None,
        )
        for tale in report.ledger.tales.values()
    ]
    return Snapshot(name="", taken=when(report.seconds), jobs=jobs)


def _events(report: Report) -> list[tuple[str, str]]:
    def said(event: Event) -> str:
        lasted = f" for {event.until - event.at:.0f} s" if event.until else ""
        return f"{event.fault}{lasted}"

    return [(f"{report.hours(event.at):.1f}", said(event)) for event in report.events]
