"""A graph of the GPUs that each team held over a recorded day, in the style of the status page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.picture import timeline


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Average GPUs of each team in a time span of hours, and GPUs of lost nodes."""

    since: float
    until: float
    held: Mapping[str, float]
    lost: float


def usage(steps: Sequence[Usage], class_of: Mapping[str, str], gpus: int) -> timeline.Usage:
    """Return how many GPUs each team held by the hour, one upon the other, and which were free or lost."""
    begin, end = (steps[0].since, steps[-1].until) if steps else (0.0, 1.0)
    runs = []
    for step in steps:
        below = 0.0
        free = max(0.0, gpus - step.lost - sum(step.held.values()))
        spans = [(kind, step.held.get(team, 0.0), team) for team, kind in class_of.items()]
        for kind, number, name in (*spans, ("free", free, "free"), ("lost", step.lost, "lost")):
            if number > 0:
                title = f"{name}: {number:.0f} GPUs, hour {step.since:.1f} to {step.until:.1f}"
                runs.append((kind, title, step.since - begin, step.until - begin, below, number))
            below += number
    times = [f"hour {begin + (end - begin) * part / 4:.1f}" for part in range(5)]
    return timeline.Usage(runs, max(end - begin, 1e-9), max(gpus, 1), times)
