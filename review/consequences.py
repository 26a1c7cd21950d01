"""Count the resources that are replaced or deleted with another one. A long list would hide the cause."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from review.compare import Change


@dataclass(frozen=True)
class Share:
    """Number of resources of one layer for each of some teams. Resources without a team have an empty list of teams."""

    layer: str
    teams: tuple[str, ...]
    each: int

    @property
    def count(self) -> int:
        return self.each * max(1, len(self.teams))


def by_cause(changes: Iterable[Change]) -> Mapping[str, tuple[Change, ...]]:
    """Return the changes that each cause has, by the URN of the cause, in the order of the changes."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.cause is not None:
            found[change.cause.urn].append(change)
    return {urn: tuple(taken) for urn, taken in found.items()}


def shares(changes: Iterable[Change]) -> tuple[Share, ...]:
    """Return the number of resources of each layer and team. Teams with the same number in a layer share an entry."""
    counts = Counter((change.layer, change.team) for change in changes)
    groups: dict[tuple[str, bool, int], list[str]] = {}
    for (layer, team), count in counts.items():
        groups.setdefault((layer, team is None, count), []).extend([team] if team is not None else [])
    return tuple(Share(layer, tuple(teams), count) for (layer, _, count), teams in groups.items())
