"""A picture of a run: GPUs in use over time, percentage of admitted jobs over time, and memory."""

import math
from collections.abc import Sequence

from lab.bench.scale.result import Result
from runner.picture.rendering import render

Points = list[tuple[float, float]]


def svg(title: str, results: Sequence[Result], gpus: int) -> str:
    """Return the picture of the rows. gpus: all there are, drawn as the bound of what can be in use."""
    used, admitted = [_steps(result.curve) for result in results], [_share(result.to_admission) for result in results]
    panels = [
        ("GPUs in use, by seconds since the first job", used, gpus),
        ("jobs admitted, in percent, by seconds since each was submitted", admitted, 100),
    ]
    names = [result.title for result in results]
    return render("lab/bench/scale/plot.svg.j2", title=title, names=names, panels=panels, ticks=ticks)


def ticks(most: float) -> list[float]:
    """Return four to ten round numbers from 0 to `most`."""
    size: float = 10 ** math.floor(math.log10(most))
    step = next(size * part for part in (0.1, 0.2, 0.5, 1, 2) if most / (size * part) <= 10)
    return [step * index for index in range(int(most / step) + 1)]


def _steps(curve: Sequence[tuple[float, int]]) -> Points:
    """Return a curve that stays where it is until it changes."""
    found: Points = [(0.0, 0.0)]
    for at, value in curve:
        found += [(at, found[-1][1]), (at, float(value))]
    return found


def _share(times: Sequence[float]) -> Points:
    """Return the percentage of sorted times that are reached at each time."""
    return [(0.0, 0.0), *((at, 100 * (index + 1) / len(times)) for index, at in enumerate(times))]
