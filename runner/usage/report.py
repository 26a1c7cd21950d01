"""GPU hours as text, CSV, JSON and HTML."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from runner.picture.rendering import render
from runner.report import table
from runner.usage.prometheus import UsageError
from runner.usage.records import Held, Usage

BY: Final = ("team", "user", "job")
UNKNOWN: Final = "(unknown)"
"""The user of jobs whose records have none."""
_NUMBERS: Final = ("used", "given", "cost")
_HOUR: Final = 3600


@dataclass(frozen=True, kw_only=True)
class Row:
    """GPU hours of a team, of one of its users, or of a job. pool: a node pool's flavor.

    user, job: None if they are added up. job: its kind and name.
    given: of the team's quota. None for users and jobs, which have none.
    cost: None without prices.
    """

    team: str
    user: str | None
    job: str | None
    pool: str
    used: float
    given: float | None
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """A period's rows and their sum. retention: how long Prometheus keeps records."""

    usage: Usage
    by: str
    rows: Sequence[Row]
    total: Row
    retention: str

    @property
    def columns(self) -> Sequence[str]:
        """Return the names of the columns that have values."""
        names = ("team", "user", "job", "pool", *_NUMBERS)
        return [name for name in names if getattr(self.total, name) is not None]

    @property
    def title(self) -> str:
        begin, end = self.usage.period.begin, self.usage.period.end
        return f"GPU hours from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} (UTC)"


def prices(texts: Iterable[str]) -> Mapping[str, float]:
    """Return prices of a GPU hour by flavor, "" for the others. Raises UsageError for what is not a price."""
    found: dict[str, float] = {}
    for text in texts:
        flavor, _, amount = text.rpartition("=")
        try:
            found[flavor] = float(amount)
        except ValueError:
            found[flavor] = -1.0
        if not 0 <= found[flavor] < float("inf"):
            raise UsageError(f"{text} is not a price. Write an amount for one GPU hour, such as 2.50 or h100=2.50.")
    return found


def report(usage: Usage, by: str, priced: Mapping[str, float], retention: str = "") -> Report:
    """Return the GPU hours by `team`, `user` or `job`.

    Raises UsageError if a flavor in use has no price, or a price is of a flavor without records.
    """
    flavors = sorted({held.flavor for held in usage.held})
    lacking = [flavor for flavor in flavors if flavor not in priced and "" not in priced]
    if priced and lacking:
        raise UsageError(f"pool {lacking[0]} has no price. Add --price {lacking[0]}=AMOUNT.")
    recorded = {*flavors, *(flavor for _, flavor in usage.given)}
    if recorded and (unknown := sorted(priced.keys() - recorded - {""})):
        pools = ", ".join(sorted(recorded))
        raise UsageError(f"pool {unknown[0]} has a price, and no records in this period. Pools with records: {pools}.")
    used: dict[tuple[str, str | None, str | None, str], float] = defaultdict(float)
    if by == "team":
        used |= {(team, None, None, flavor): 0.0 for team, flavor in usage.given}
    for held in usage.held:
        used[_key(held, by)] += held.hours

    def row(team: str, user: str | None, job: str | None, pool: str, hours: float) -> Row:
        given = usage.given.get((team, pool), 0.0) if by == "team" else None
        cost = hours * priced.get(pool, priced.get("", 0.0)) if priced else None
        return Row(team=team, user=user, job=job, pool=pool, used=hours, given=given, cost=cost)

    rows = [row(*key, used[key]) for key in sorted(used, key=lambda key: tuple(map(str, key)))]
    total = Row(
        team="total",
        user=None if by == "team" else "",
        job="" if by == "job" else None,
        pool="",
        used=sum(each.used for each in rows),
        given=sum(each.given or 0.0 for each in rows) if by == "team" else None,
        cost=sum(each.cost or 0.0 for each in rows) if priced else None,
    )
    return Report(usage=usage, by=by, rows=rows, total=total, retention=retention)


def _key(held: Held, by: str) -> tuple[str, str | None, str | None, str]:
    user = None if by == "team" else held.user or UNKNOWN
    return held.team, user, f"{held.kind}/{held.job}" if by == "job" else None, held.flavor


def text(found: Report) -> str:
    """Return a table, and what is missing."""
    return "\n".join([table(found.title, _header(found), _cells(found)), *warnings(found)]) + "\n"


def page(found: Report) -> str:
    """Return an HTML page that needs no network and no script."""
    return render(
        "runner/usage/usage.html.j2",
        title=found.title,
        header=_header(found),
        rows=_cells(found),
        warnings=warnings(found),
    )


def content(found: Report) -> str:
    """Return JSON: period, rows, sum and missing hours."""
    period = found.usage.period
    body = {
        "begin": period.begin.isoformat(),
        "end": period.end.isoformat(),
        "rows": [_values(found, row) for row in found.rows],
        "total": {name: value for name, value in _values(found, found.total).items() if name in _NUMBERS},
        "missingHours": [{"day": str(day), "hours": hours} for day, hours in found.usage.missing.items()],
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def sheet(found: Report) -> str:
    """Return CSV with the month and its missing hours in each row, so that sheets of several months can be joined."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(["month", *found.columns, "missing_hours"])
    missing = _figure(sum(found.usage.missing.values()))
    for row in found.rows:
        lines.writerow([f"{found.usage.period.begin:%Y-%m}", *_shown(found, row), missing])
    return written.getvalue()


def warnings(found: Report) -> list[str]:
    """Return lines about the time without complete records. Empty if all records exist."""
    missing = found.usage.missing
    if not missing:
        return []
    lengths = {day.begin.date(): day.seconds / _HOUR for day in found.usage.period.days()}
    kept = f" Prometheus keeps {found.retention}." if found.retention else ""
    hours = f"{sum(missing.values()):.1f} of {sum(lengths.values()):.1f} hours"
    lines = [f"Incomplete: {hours} lack records, and their GPU hours are not in the report.{kept}"]
    numbered = enumerate(missing)
    for (is_whole, _), run in groupby(
        numbered, lambda it: (missing[it[1]] == lengths[it[1]], it[1].toordinal() - it[0])
    ):
        days = [day for _, day in run]
        span = f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"
        lines.append(f"  {span}: {'all ' if is_whole else ''}{sum(missing[day] for day in days):.1f} hours")
    return lines


def _header(found: Report) -> list[str]:
    return [name.upper() for name in found.columns]


def _cells(found: Report) -> list[list[str]]:
    return [_shown(found, row) for row in (*found.rows, found.total)]


def _shown(found: Report, row: Row) -> list[str]:
    return [_figure(value) if isinstance(value, float) else value for value in _values(found, row).values()]


def _values(found: Report, row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in found.columns}


def _figure(value: float) -> str:
    return f"{value:.2f}"
