"""A picture of a run: GPUs in use over time, how many jobs were admitted after how long, and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from tests.bench.scale.result import Result

COLOURS: Final = ("#3b6fb6", "#c0504d", "#7f9a48", "#8064a2", "#31859c", "#e08a2e")
_LEFT, _TOP, _WIDTH, _HEIGHT, _GAP = 64, 64, 420, 260, 90

Points = Sequence[tuple[float, float]]


def svg(title: str, results: Sequence[Result], gpus: int) -> str:
    """Return the picture of the rows. gpus: all there are, drawn as the bound of what can be in use."""
    panels = (
        ("GPUs in use, by seconds since the first job", [_steps(result.curve) for result in results], float(gpus)),
        (
            "jobs admitted, in percent, by seconds since each was submitted",
            [_share(r.to_admission) for r in results],
            100.0,
        ),
    )
    size = f'width="{_LEFT + 2 * (_WIDTH + _GAP)}" height="{_TOP + _HEIGHT + 50}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for index, result in enumerate(results):
        x = _LEFT + 130 * index
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[index % len(COLOURS)]}"/>')
        parts.append(f'<text x="{x + 14}" y="37">{escape(result.title)}</text>')
    for index, (caption, lines, most) in enumerate(panels):
        parts += _panel(_LEFT + index * (_WIDTH + _GAP), caption, lines, most)
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: int, caption: str, lines: Sequence[Points], most: float) -> Iterator[str]:
    end = max([x for line in lines for x, _ in line] + [1.0])
    bottom = _TOP + _HEIGHT
    yield f'<text x="{left}" y="{_TOP - 8}">{escape(caption)}</text>'
    for tick in ticks(end):
        x = left + tick / end * _WIDTH
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#e5e5e5"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}</text>'
    for tick in ticks(most):
        y = bottom - tick / most * _HEIGHT
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + _WIDTH}" y2="{y:.1f}" stroke="#e5e5e5"/>'
        yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    yield f'<line x1="{left}" y1="{_TOP}" x2="{left + _WIDTH}" y2="{_TOP}" stroke="#999999" stroke-dasharray="4 3"/>'
    for index, line in enumerate(lines):
        points = " ".join(f"{left + x / end * _WIDTH:.1f},{bottom - y / most * _HEIGHT:.1f}" for x, y in line)
        colour = COLOURS[index % len(COLOURS)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def ticks(most: float) -> list[float]:
    """Return round numbers from nothing to the most, four to ten of them."""
    size: float = 10 ** math.floor(math.log10(most))
    step = next(size * part for part in (0.1, 0.2, 0.5, 1, 2) if most / (size * part) <= 10)
    return [step * index for index in range(int(most / step) + 1)]


def _steps(curve: Sequence[tuple[float, int]]) -> Points:
    """Return a curve that stays where it is until it changes."""
    found: list[tuple[float, float]] = [(0.0, 0.0)]
    for at, value in curve:
        found += [(at, found[-1][1]), (at, float(value))]
    return found


def _share(times: Sequence[float]) -> Points:
    """Return how many percent of sorted times are over by each."""
    return [(0.0, 0.0), *((at, 100 * (index + 1) / len(times)) for index, at in enumerate(times))]
