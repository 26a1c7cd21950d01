"""A picture of who holds which GPUs when: one row for each GPU, one colour for each team, and which nodes were lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Final

from runner.picture.rendering import render
from tests.scenarios.record import Record, Use
from tests.scenarios.size import GPUS_PER_NODE

COLOURS: Final[Mapping[str, str]] = {"blue": "#3b6fb6", "red": "#c0504d", "free": "#f2f2f2", "lost": "#a6a6a6"}
_STEPS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3600, 36000)
"""Seconds from one time of the axis to the next."""
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
    return render(
        "tests/scenarios/gantt.svg.j2",
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
