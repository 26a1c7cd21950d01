"""The drawings: nodes with their GPUs, queues as bars, jobs over time. Each is one SVG, in pixels.

Nobody needs colours to read them: each team has a pattern of its own, and figures stand beside what they count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from xml.etree.ElementTree import Element

from runner.picture.elements import element
from runner.picture.state import Job, Node, Queue, Snapshot

WIDTH: Final = 960
MOST_JOBS: Final = 60
"""Rows of the latest jobs; more would be too many to read."""
_LEFT: Final = 230
_ROW: Final = 24
_BOX: Final = 18
_SHAPES: Final[Sequence[tuple[str, Mapping[str, object]]]] = (
    ("path", {"d": "M0 8 8 0"}),
    ("path", {"d": "M0 4 8 4"}),
    ("circle", {"cx": 4, "cy": 4, "r": 1.6}),
    ("path", {"d": "M4 0 4 8"}),
    ("path", {"d": "M0 0 8 8"}),
    ("path", {"d": "M0 4 8 4M4 0 4 8"}),
    ("path", {"d": "M0 0 8 8M0 8 8 0"}),
    ("rect", {"x": 2, "y": 2, "width": 3, "height": 3}),
)
TEAMS: Final = len(_SHAPES)
"""How many teams are told apart by pattern; then patterns come again, and names still tell."""


def patterns() -> Element:
    """Return the definitions that the drawings fill with: one for each team, and what is lost."""
    made = [_pattern(f"team-{number}", tag, shape) for number, (tag, shape) in enumerate(_SHAPES)]
    made += [_pattern("lost", "path", {"d": "M0 0 8 8M0 8 8 0"}), _pattern("borrowed", "path", {"d": "M0 8 8 0"})]
    return element("svg", element("defs", *made), width=0, height=0, aria_hidden="true", class_="defs")


def nodes(snapshot: Snapshot, order: Mapping[str, int]) -> Element:
    """Draw each node as a row of its GPUs: whose they are, which are free, which are lost."""
    rows: list[Element] = []
    for number, node in enumerate(snapshot.nodes):
        y = number * _ROW
        rows.append(_label(node.name, y))
        for position, (kind, title) in enumerate(_gpus(node, order)):
            shape = {"x": _LEFT + position * (_BOX + 3), "y": y + 3, "width": _BOX, "height": _BOX}
            rows.append(element("rect", element("title", title), class_=kind, **shape))
        said = ", ".join([node.state, *(f"{team} {gpus}" for team, gpus in node.held.items())])
        rows.append(_text(said, _LEFT + max(8, node.gpus) * (_BOX + 3) + 10, y))
    return _drawing("Nodes and their GPUs", rows, len(snapshot.nodes))


def queues(found: Sequence[Queue]) -> Element:
    """Draw each queue: its quota as a frame, in it what it uses and does not lend, beyond it what it borrows."""
    scale = (WIDTH - _LEFT - 330) / max([1, *(max(queue.nominal, queue.used) for queue in found)])
    rows: list[Element] = []
    for number, queue in enumerate(found):
        y, own = number * _ROW, min(queue.used, queue.nominal)
        withheld = 0 if queue.lendable is None else max(0, queue.nominal - queue.lendable)
        borrowed = max(queue.borrowed, queue.used - queue.nominal, 0)
        free = max(0, queue.nominal - own)
        bars = [
            ("used", 0, own, f"{own} used of its own"),
            ("lost", queue.nominal - min(withheld, free), min(withheld, free), f"{withheld} not lent"),
            ("borrowed", queue.nominal, borrowed, f"{borrowed} borrowed"),
        ]
        rows.append(_label(queue.name, y))
        for kind, start, length, title in bars:
            if length:
                shape = {"x": _LEFT + start * scale, "y": y + 5, "width": length * scale, "height": _BOX - 4}
                rows.append(element("rect", element("title", title), class_=kind, **_rounded(shape)))
        frame = {"x": _LEFT, "y": y + 3, "width": max(queue.nominal * scale, 1), "height": _BOX}
        rows.append(element("rect", element("title", f"quota {queue.nominal}"), class_="quota", **_rounded(frame)))
        said = [f"{queue.used} used, quota {queue.nominal}"]
        said += [f"{borrowed} borrowed"] if borrowed else []
        said += [f"{free - withheld} left to others"] if free > withheld else []
        said += [f"{withheld} not lent"] if withheld else []
        said += [f"{queue.pending} waiting"] if queue.pending else []
        end = max(queue.nominal, queue.nominal + borrowed) * scale
        rows.append(_text(", ".join(said), _LEFT + end + 10, y))
    return _drawing("Queues: GPUs used, borrowed, not lent", rows, len(found))


def jobs(snapshot: Snapshot, order: Mapping[str, int]) -> Element:
    """Draw when each job waited and ran, as its conditions tell: of one that was evicted, the last time alone."""
    shown = latest(snapshot.jobs)
    begin = min([job.created for job in shown], default=snapshot.taken)
    span = max((snapshot.taken - begin).total_seconds(), 60.0)
    width = WIDTH - _LEFT - 130

    def place(when: datetime) -> float:
        return _LEFT + width * min(1.0, max(0.0, (when - begin).total_seconds() / span))

    rows: list[Element] = []
    for number, job in enumerate(shown):
        y, end = number * _ROW, job.ended or snapshot.taken
        rows.append(_label(f"{job.namespace}/{job.name}", y))
        start = job.started or end
        queued = job.queued or start
        spans = [
            ("earlier", job.created, queued, "waited and ran before, for"),
            ("waiting", queued, start, "waited"),
            (_team(order, job.namespace), start, end, "ran"),
        ]
        for kind, since, until, what in spans:
            if until > since:
                title = f"{job.namespace}/{job.name} {what} {duration(until - since)}, {job.gpus} GPUs"
                thin = kind in ("earlier", "waiting")
                shape = {
                    "x": place(since),
                    "y": y + (10 if thin else 4),
                    "width": max(1.0, place(until) - place(since)),
                    "height": 4 if thin else _BOX - 2,
                }
                rows.append(element("rect", element("title", title), class_=kind, **_rounded(shape)))
        state = "ended" if job.ended else "runs" if job.started else "waits"
        rows.append(_text(f"{job.gpus} GPUs, {state}", _LEFT + width + 8, y))
    axis = [
        element("text", when.strftime("%d %b %H:%M"), x=round(place(when), 1), y=len(shown) * _ROW + 14, class_="axis")
        for when in (begin + timedelta(seconds=span * part / 4) for part in range(4))
    ]
    return _drawing("Jobs over time", [*rows, *axis], len(shown) + 1 if shown else 0)


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


def legend(order: Mapping[str, int]) -> Element:
    """Return which pattern is whose."""
    items = [(_team(order, team), team) for team in order]
    items += [
        ("free", "free"),
        ("lost", "lost or not lent"),
        ("borrowed", "borrowed"),
        ("waiting", "waits"),
        ("earlier", "waited and ran before"),
    ]
    keys = [
        element(
            "li",
            element(
                "svg",
                element("rect", class_=kind, width=16, height=16, x=1, y=1),
                width=18,
                height=18,
                aria_hidden="true",
            ),
            f" {name}",
        )
        for kind, name in items
    ]
    return element("ul", *keys, class_="legend")


def _gpus(node: Node, order: Mapping[str, int]) -> list[tuple[str, str]]:
    held = [(_team(order, team), f"{node.name}: {team}") for team, number in node.held.items() for _ in range(number)]
    lost = max(0, min(node.gpus - node.usable, node.gpus - len(held)))
    free = max(0, node.gpus - len(held) - lost)
    return [*held, *[("free", f"{node.name}: free")] * free, *[("lost", f"{node.name}: {node.state}")] * lost]


def _team(order: Mapping[str, int], team: str) -> str:
    return f"team team-{order[team] % TEAMS}"


def _pattern(name: str, tag: str, shape: Mapping[str, object]) -> Element:
    ground = element("rect", width=8, height=8, class_="ground")
    return element(
        "pattern", ground, element(tag, **shape), id=name, width=8, height=8, patternUnits="userSpaceOnUse", class_=name
    )


def _label(text: str, y: float) -> Element:
    short = text if len(text) <= 30 else f"{text[:29]}…"
    return element("text", element("title", text), short, x=_LEFT - 10, y=y + 17, class_="label")


def _text(text: str, x: float, y: float) -> Element:
    return element("text", text, x=round(x, 1), y=y + 17)


def _rounded(shape: Mapping[str, float]) -> Mapping[str, float]:
    return {name: round(value, 1) for name, value in shape.items()}


def _drawing(title: str, rows: Sequence[Element], count: int) -> Element:
    height = max(1, count) * _ROW + 4
    if not count:
        rows = [_text("none", 0, 0)]
    return element(
        "svg",
        element("title", title),
        *rows,
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        aria_label=title,
        xmlns="http://www.w3.org/2000/svg",
    )
