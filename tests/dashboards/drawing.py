"""Dashboards as one HTML file: a graph for each panel, with a line and a dash of its own for each series."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from components.observability.dashboards import Dashboard, Panel
from runner.picture.elements import element, written
from runner.picture.page import POLICY
from tests.dashboards.scraping import Prometheus, Series

Line = tuple[str, list[tuple[float, float]]]
"""A name in the legend, and values by time."""
_WIDTH: Final = 460
_HEIGHT: Final = 150
_LEFT: Final = 52
_MOST: Final = 6
"""Names in a legend; the other lines are drawn and counted."""
_COLOURS: Final = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#8a6d00")
_DASHES: Final = ("none", "6 3", "2 2", "8 2 2 2", "1 3", "10 4")
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #bbb }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ededed; --paper: #161616; --line: #555 } polyline { filter: brightness(1.6) }
}
body { font: 13px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 1.5rem }
.panels { display: flex; flex-wrap: wrap; gap: 1rem } figure { margin: 0; width: 460px }
figcaption { font-weight: bold }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink) } polyline { fill: none; stroke-width: 1.6 }
.grid { stroke: var(--line); stroke-width: .6 } ul { list-style: none; padding: 0; margin: 0 } p { margin: .2rem 0 }
"""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A panel with what Prometheus said. lines: series by the name in the legend. error: its words where it refused."""

    panel: Panel
    lines: Sequence[Line] = ()
    error: str = ""
    silent: Sequence[str] = ()
    """Legends of the queries that found nothing."""


def asked(prometheus: Prometheus, panel: Panel, seconds: float) -> Drawn:
    """Ask all that a panel asks, for every value of its dashboard's variables."""
    lines: list[Line] = []
    silent = []
    for legend, query in panel.queries.items():
        try:
            found = prometheus.range(re.sub(r"\$[a-z]\w*", ".*", query), seconds)
        except OSError as error:
            return Drawn(panel=panel, error=f"{query}: {error}")
        lines += _named(legend, found)
        silent += [] if found else [legend]
    return Drawn(panel=panel, lines=lines, silent=silent)


def page(dashboards: Iterable[tuple[Dashboard, Sequence[Drawn]]], note: str) -> str:
    """Return the document."""
    sections = [
        element(
            "section",
            element("h2", dashboard.title),
            element("div", *(_figure(drawn) for drawn in found), class_="panels"),
        )
        for dashboard, found in dashboards
    ]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("title", "Dashboards"),
        element("style", _STYLE),
    )
    body = element("body", element("h1", "Dashboards"), element("p", note), *sections)
    return written(element("html", head, body, lang="en"))


def _named(legend: str, found: Series) -> Iterable[Line]:
    for labels, values in found:
        yield _label(legend, labels), values


def _label(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match[1], ""), legend)


def _figure(drawn: Drawn) -> Element:
    if drawn.error or not drawn.lines:
        content = [element("p", drawn.error or "no data")]
    else:
        content = [_graph(drawn), _legend(drawn)]
    described = [element("p", drawn.panel.description)] if drawn.panel.description else []
    title = f"{drawn.panel.title} ({drawn.panel.unit})"
    return element("figure", element("figcaption", title), *described, *content)


def _graph(drawn: Drawn) -> Element:
    points = [point for _, values in drawn.lines for point in values]
    begin, end = min(when for when, _ in points), max(when for when, _ in points)
    top = (max(value for _, value in points) or 1.0) * 1.05
    bottom = min([0.0, *(value for _, value in points)])
    lines = [_line(number, values, (begin, end), (bottom, top)) for number, (_, values) in enumerate(drawn.lines)]
    grid = [
        part
        for share in (0, 0.5, 1)
        for part in (
            element("path", d=f"M{_LEFT} {_place(share)}H{_WIDTH}", class_="grid"),
            element("text", _figure_of(bottom + share * (top - bottom)), x=2, y=_place(share) + 4),
        )
    ]
    return element("svg", *grid, *lines, viewBox=f"0 0 {_WIDTH} {_HEIGHT + 8}", width=_WIDTH, role="img")


def _line(
    number: int,
    values: Sequence[tuple[float, float]],
    times: tuple[float, float],
    heights: tuple[float, float],
) -> Element:
    span, height = max(times[1] - times[0], 1.0), heights[1] - heights[0]
    points = " ".join(
        f"{_LEFT + (_WIDTH - _LEFT) * (when - times[0]) / span:.1f},{_place((value - heights[0]) / height):.1f}"
        for when, value in values
    )
    return element("polyline", points=points, stroke=_colour(number), stroke_dasharray=_dash(number))


def _legend(drawn: Drawn) -> Element:
    rows = []
    for number, (name, values) in enumerate(drawn.lines[:_MOST]):
        key = element("path", d="M0 6H26", stroke=_colour(number), stroke_width=2, stroke_dasharray=_dash(number))
        text = f" {name}: {_figure_of(values[-1][1])}"
        rows.append(element("li", element("svg", key, width=26, height=12, aria_hidden="true"), text))
    more = len(drawn.lines) - _MOST
    return element("ul", *rows, *([element("li", f"and {more} more")] if more > 0 else []))


def _place(share: float) -> float:
    return round(_HEIGHT - (_HEIGHT - 8) * share + 2, 1)


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _dash(number: int) -> str:
    return _DASHES[(number // len(_COLOURS) + number) % len(_DASHES)]


def _figure_of(value: float) -> str:
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"
