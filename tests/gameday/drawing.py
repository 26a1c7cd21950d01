"""Who held how many GPUs over a recorded day, drawn as the status page draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from runner.picture.elements import element
from runner.picture.shapes import LEFT, ROW, WIDTH, box, drawing, label, of_team

_TOP, _HEIGHT, _WIDTH = 6, 220, WIDTH - LEFT - 130


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Who held how many GPUs from one hour to another, on average, and how many nobody could have."""

    since: float
    until: float
    held: Mapping[str, float]
    lost: float


def usage(steps: Sequence[Usage], order: Mapping[str, int], gpus: int) -> Element:
    """Draw how many GPUs each team held by the hour, one upon the other, and which were free or lost."""
    begin, end = (steps[0].since, steps[-1].until) if steps else (0.0, 1.0)
    along, up = _WIDTH / max(end - begin, 1e-9), _HEIGHT / max(gpus, 1)
    columns: list[Element] = []
    for step in steps:
        level = 0.0
        free = max(0.0, gpus - step.lost - sum(step.held.values()))
        spans = [(of_team(order, team), step.held.get(team, 0.0), team) for team in order]
        for kind, number, name in (*spans, ("free", free, "free"), ("lost", step.lost, "lost")):
            level += number
            if number > 0:
                title = f"{name}: {number:.0f} GPUs, hour {step.since:.1f} to {step.until:.1f}"
                x, y = LEFT + (step.since - begin) * along, _TOP + _HEIGHT - level * up
                columns.append(box(kind, title, x=x, y=y, width=(step.until - step.since) * along, height=number * up))
    # Their own frames would hide the patterns by which teams are told apart.
    rows = [
        element("g", *columns, class_="columns"),
        box("quota", f"{gpus} GPUs", x=LEFT, y=_TOP, width=_WIDTH, height=_HEIGHT),
        label(f"{gpus} GPUs", 0),
        label("0", _HEIGHT - 12),
    ]
    for part in range(5):
        hour = begin + (end - begin) * part / 4
        x = round(LEFT + (hour - begin) * along, 1)
        rows.append(element("text", f"hour {hour:.1f}", x=x, y=_TOP + _HEIGHT + 18, class_="axis"))
    return drawing("GPUs over time", rows, -(-(_TOP + _HEIGHT + 24) // ROW))
