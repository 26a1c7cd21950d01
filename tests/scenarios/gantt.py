"""A picture of who holds which GPUs when: one row for each GPU, one colour for each team, and which nodes were lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Final
from xml.sax.saxutils import escape

from tests.scenarios.record import Loss, Record, Use
from tests.scenarios.size import GPUS_PER_NODE

COLOURS: Final[Mapping[str, str]] = {"blue": "#3b6fb6", "red": "#c0504d"}
FREE, LOST = "#f2f2f2", "#a6a6a6"
_FONT: Final = 'font-family="sans-serif" font-size="11"'
_LEFT, _TOP, _WIDTH, _ROW, _GAP, _BELOW, _LINE = 110, 46, 900, 7, 10, 40, 14
_LETTERS: Final = 140
"""Of a line of the verdict, which says at length what was seen where a promise is broken."""


def lanes(uses: Sequence[Use], end: float, gpus: int = GPUS_PER_NODE) -> list[tuple[Use, list[int]]]:
    """Return each use with the GPUs of its node that it is drawn on: the first that are free when it begins.

    What holds more than a node has left, which Kubernetes does not let happen, is drawn on what is left.
    """
    free_at: dict[str, list[float]] = defaultdict(lambda: [0.0] * gpus)
    drawn = []
    for use in sorted(uses, key=lambda use: use.began):
        lane_ends = free_at[use.node]
        rows = [row for row, free in enumerate(lane_ends) if free <= use.began][: use.gpus]
        for row in rows:
            lane_ends[row] = end if use.ended is None else use.ended
        drawn.append((use, rows))
    return drawn


def svg(title: str, verdict: str, record: Record, nodes: Sequence[str]) -> str:
    """Return the picture: time from left to right in seconds, the nodes' GPUs from top to bottom."""
    end = max([record.lines[-1].at if record.lines else 0.0, *(use.ended or 0.0 for use in record.uses.values()), 1.0])
    scale = _WIDTH / end
    said = wrap(verdict, _LETTERS)
    first = _TOP + (len(said) - 1) * _LINE
    top = {node: first + index * (GPUS_PER_NODE * _ROW + _GAP) for index, node in enumerate(nodes)}
    height = first + len(nodes) * (GPUS_PER_NODE * _ROW + _GAP) + _BELOW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {_box(_LEFT + _WIDTH + 20, height)} {_FONT}>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
        *(f'<text x="{_LEFT}" y="{34 + row * _LINE}">{escape(line)}</text>' for row, line in enumerate(said)),
    ]
    for node, y in top.items():
        parts.append(f'<text x="8" y="{y + GPUS_PER_NODE * _ROW / 2 + 4:.0f}">{escape(node)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{GPUS_PER_NODE * _ROW}" fill="{FREE}"/>')
    spans: list[tuple[Use | Loss, list[int], int, str, str]] = [
        (loss, [0], GPUS_PER_NODE * _ROW, LOST, "lost") for loss in record.losses if loss.node in top
    ]
    for use, rows in lanes([use for use in record.uses.values() if use.node in top], end):
        spans.append((use, rows, _ROW - 1, COLOURS.get(use.team, "#777777"), f"{use.team}/{use.job}"))
    for span, rows, thick, colour, tip in spans:
        width = max(1.0, ((end if span.ended is None else span.ended) - span.began) * scale)
        for y in (top[span.node] + row * _ROW for row in rows):
            start = f'<rect x="{_LEFT + span.began * scale:.1f}" y="{y}" {_box(width, thick)} fill="{colour}">'
            parts.append(f"{start}<title>{escape(tip)}</title></rect>")
    parts += _axis(end, scale, first, height)
    parts += _legend()
    return "\n".join([*parts, "</svg>", ""])


def _box(width: float, height: float) -> str:
    return f'width="{width:.1f}" height="{height:.1f}"'


def _axis(end: float, scale: float, top: int, height: int) -> list[str]:
    steps = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3600, 36000)
    step = next((step for step in steps if end / step <= 12), steps[-1])
    y = height - _BELOW
    parts = []
    for tick in range(0, int(end) + 1, step):
        x = f"{_LEFT + tick * scale:.1f}"
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{y}" stroke="#cccccc"/>')
        parts.append(f'<text x="{x}" y="{y + 14}" text-anchor="middle">{tick} s</text>')
    return parts


def _legend() -> list[str]:
    parts = []
    shown = {**COLOURS, "free": FREE, "lost": LOST}
    for index, (what, colour) in enumerate(shown.items()):
        x = _LEFT + _WIDTH - 60 * (len(shown) - index)
        parts.append(f'<rect x="{x}" y="10" {_box(10, 10)} fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="19">{what}</text>')
    return parts
