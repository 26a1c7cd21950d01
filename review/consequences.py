"""What one resource takes along when it is replaced or deleted, in counts: a hundred lines would hide the cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from review.compare import Change


@dataclass(frozen=True)
class Share:
    """So many resources of one layer for each of some teams; no team for what belongs to none."""

    layer: str
    teams: tuple[str, ...]
    each: int

    @property
    def count(self) -> int:
        """All of them together."""
        return self.each * max(1, len(self.teams))


def by_cause(changes: Iterable[Change]) -> Mapping[str, tuple[Change, ...]]:
    """Return what each cause takes along, by the URN of the cause, in the order of the changes."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.cause is not None:
            found[change.cause.urn].append(change)
    return {urn: tuple(taken) for urn, taken in found.items()}


def shares(changes: Iterable[Change]) -> tuple[Share, ...]:
    """Return how many resources of each layer and team there are; teams with equally many of a layer go together."""
    counts = Counter((change.layer, change.team) for change in changes)
    groups: dict[tuple[str, bool, int], list[str]] = {}
    for (layer, team), count in counts.items():
        groups.setdefault((layer, team is None, count), []).extend([team] if team is not None else [])
    return tuple(Share(layer, tuple(teams), count) for (layer, _, count), teams in groups.items())


def layers(changes: Iterable[Change]) -> Mapping[str, int]:
    """Return how many resources of each layer there are."""
    return Counter(change.layer for change in changes)
