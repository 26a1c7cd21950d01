"""A picture of GPU use over time: a row for each GPU, a colour for each team, and the lost nodes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Final

from lab.scenarios.record import Record, Use
from lab.scenarios.size import GPUS_PER_NODE
from runner.picture.rendering import render

COLOURS: Final[Mapping[str, str]] = {"blue": "#3b6fb6", "red": "#c0504d", "free": "#f2f2f2", "lost": "#a6a6a6"}
_STEPS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3600, 36000)
"""Seconds from one time of the axis to the next."""
_LETTERS: Final = 140
"""Letters in a line of the verdict, which is long if a promise is broken."""


def lanes(uses: Sequence[Use], end: float, gpus: int = GPUS_PER_NODE) -> list[tuple[Use, list[int]]]:
    """Return each use with the GPUs of its node where it is drawn: the first free ones at its start.

    Kubernetes does not let pods hold more than a node has; such a use would be drawn on the remaining GPUs.
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
    """Return the picture: time in seconds from left to right, the nodes' GPUs from top to bottom."""
    end = max([record.lines[-1].at if record.lines else 0.0, *(use.ended or 0.0 for use in record.uses.values()), 1.0])
    return render(
        "lab/scenarios/gantt.svg.j2",
        title=title,
        said=wrap(verdict, _LETTERS),
        nodes=nodes,
        gpus=GPUS_PER_NODE,
        end=end,
        step=next((step for step in _STEPS if end / step <= 12), _STEPS[-1]),
        losses=[loss for loss in record.losses if loss.node in nodes],
        lanes=lanes([use for use in record.uses.values() if use.node in nodes], end),
        colours=COLOURS,
    )
