"""What Prometheus has recorded in a period: GPU hours of jobs, quotas of teams, and the time without records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from runner.usage.prometheus import Prometheus, UsageError

HELD: Final = "mlbatch:gpus_held"
QUOTA: Final = "mlbatch:gpus_quota"
INTERVAL: Final = "mlbatch:usage_interval_seconds"
"""Seconds between two records. A time without this series has no complete records."""
LABELS: Final = ("namespace", "user", "job_kind", "job_name", "flavor")
_HOUR: Final = 3600


@dataclass(frozen=True, kw_only=True)
class Period:
    """A time in UTC, without its end."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.begin).total_seconds()

    def days(self) -> Sequence["Period"]:
        """Return its days. The first and the last can be shorter."""
        found = []
        begin = self.begin
        while begin < self.end:
            end = min(datetime.combine(begin.date() + timedelta(days=1), time(), UTC), self.end)
            found.append(Period(begin=begin, end=end))
            begin = end
        return found


@dataclass(frozen=True, kw_only=True)
class Held:
    """GPU hours of the quota that a job had. user: empty if no record has one. flavor: of the node pool."""

    team: str
    user: str
    kind: str
    job: str
    flavor: str
    hours: float


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The records of a period.

    given: GPU hours of the quota, by team and flavor.
    missing: hours without complete records, by day. Only days that lack some.
    """

    period: Period
    held: Sequence[Held]
    given: Mapping[tuple[str, str], float]
    missing: Mapping[date, float]


def month(text: str | None, now: datetime) -> Period:
    """Return a month such as 2026-11 until now, the current one without a text. Raises UsageError for others."""
    try:
        begin = datetime.strptime(f"{now:%Y-%m}" if text is None else text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a month. Write one such as {now:%Y-%m}.") from error
    if begin >= now:
        raise UsageError(f"{text} has not begun. It is {now:%Y-%m-%d %H:%M} in UTC.")
    return Period(begin=begin, end=min((begin + timedelta(days=31)).replace(day=1), now))


def read(prometheus: Prometheus, period: Period) -> Usage:
    """Return the records of a period. Raises UsageError if Prometheus does not answer."""
    end = period.end.timestamp()

    def hours(record: str, labels: Sequence[str], each: float) -> Mapping[tuple[str, ...], float]:
        query = f"sum by ({', '.join(labels)}) (sum_over_time({record}[{_milliseconds(period)}]))"
        found = prometheus.query(query, end)
        return {tuple(labelled.get(label, "") for label in labels): value * each for labelled, value in found}

    intervals = [value for _, value in prometheus.query(f"max_over_time({INTERVAL}[{_milliseconds(period)}])", end)]
    interval = max(intervals, default=0.0)
    each = interval / _HOUR
    return Usage(
        period=period,
        held=[
            Held(team=team, user=user, kind=kind, job=job, flavor=flavor, hours=found)
            for (team, user, kind, job, flavor), found in sorted(hours(HELD, LABELS, each).items())
        ],
        given={(team, flavor): found for (team, flavor), found in hours(QUOTA, ("namespace", "flavor"), each).items()},
        missing=dict(_missing(prometheus, period, interval)),
    )


def _missing(prometheus: Prometheus, period: Period, interval: float) -> Sequence[tuple[date, float]]:
    """Return days and hours without records. One record may lie on either side of midnight."""
    found = []
    for day in period.days():
        query = f"sum_over_time({INTERVAL}[{_milliseconds(day)}])"
        recorded = max((value for _, value in prometheus.query(query, day.end.timestamp())), default=0.0)
        if day.seconds - recorded > interval:
            found.append((day.begin.date(), (day.seconds - recorded) / _HOUR))
    return found


def _milliseconds(period: Period) -> str:
    """Return the length as PromQL's duration, at least one."""
    return f"{max(1, round(period.seconds * 1000))}ms"
