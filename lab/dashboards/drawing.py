"""Dashboards as one HTML file: a graph for each panel, with a distinct line and dash for each series."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from components.observability.dashboards import Dashboard, Panel
from lab.dashboards.scraping import Prometheus, Series
from runner.picture.rendering import render

Line = tuple[str, list[tuple[float, float]]]
"""A name in the legend, and values by time."""
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The lines of a panel, in pixels. grid: height and figure of each. lines: points, and the words in the legend."""

    WIDTH: ClassVar = 460
    HEIGHT: ClassVar = 150
    LEFT: ClassVar = 52
    grid: Sequence[tuple[float, str]]
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A panel with Prometheus' data. lines: series by the name in the legend. error: Prometheus' message if it
    failed.
    """

    panel: Panel
    lines: Sequence[Line] = ()
    error: str = ""
    silent: Sequence[str] = ()
    """Legends of the queries without data."""

    @property
    def graph(self) -> Graph:
        """Return the drawing of one or more lines."""
        points = [point for _, values in self.lines for point in values]
        begin, end = min(when for when, _ in points), max(when for when, _ in points)
        top = (max(value for _, value in points) or 1.0) * 1.05
        bottom = min([0.0, *(value for _, value in points)])
        span, height, width = max(end - begin, 1.0), top - bottom, Graph.WIDTH - Graph.LEFT

        def drawn(values: Sequence[tuple[float, float]]) -> str:
            return " ".join(
                f"{Graph.LEFT + width * (when - begin) / span:.1f},{_place((value - bottom) / height)}"
                for when, value in values
            )

        return Graph(
            grid=[(_place(share), _figure_of(bottom + share * height)) for share in (0, 0.5, 1)],
            lines=[(drawn(values), f"{name}: {_figure_of(values[-1][1])}") for name, values in self.lines],
        )


def asked(prometheus: Prometheus, panel: Panel, seconds: float) -> Drawn:
    """Run all queries of a panel, for every value of its dashboard's variables."""
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
    return render("lab/dashboards/dashboards.html.j2", title="Dashboards", dashboards=dashboards, note=note)


def _named(legend: str, found: Series) -> Iterable[Line]:
    for labels, values in found:
        yield _label(legend, labels), values


def _label(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match[1], ""), legend)


def _place(share: float) -> float:
    return round(Graph.HEIGHT - (Graph.HEIGHT - 8) * share + 2, 1)


def _figure_of(value: float) -> str:
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"
