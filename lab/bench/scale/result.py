"""The result of a row, and its text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lab.bench.scale import memory
from lab.bench.scale.requests import Asked

_MOST_SHOWN: Final = 10
_READS: Final = frozenset({"GET", "LIST"})
HEADER: Final = (
    f"{'':12} | admitted/s  ratio | admission s median    p99 | start s median    p99 "
    "| GPUs in use  of best  half gangs | API calls a job  reads  ratio"
)


@dataclass(frozen=True)
class Result:
    """The figures of a row.

    to_admission, to_start: sorted seconds from a job's submission to its admission, and to the binding of the last of
        its pods that found a node.
    held: GPUs in use when all jobs are admitted and no more pods find a node.
    best: with the best possible packing.
    halves: gangs with nodes for only some pods at that time. All three are sums over the waves.
    asked: requests to the API server.
    memory: largest MiB, by program.
    curve: GPUs in use, by seconds.
    waves: finished and planned waves; fewer are finished if the row ended early.
    """

    title: str
    admitted_per_second: float
    to_admission: Sequence[float]
    to_start: Sequence[float]
    held: int
    best: int
    halves: int
    asked: Asked
    memory: Mapping[str, int]
    curve: Sequence[tuple[float, int]]
    waves: tuple[int, int]

    @property
    def jobs(self) -> int:
        """Number of admitted jobs."""
        return len(self.to_admission)

    @property
    def calls(self) -> float:
        """Requests to the API server for each job; NaN without jobs."""
        return sum(self.asked.values()) / self.jobs if self.jobs else math.nan

    @property
    def reads(self) -> float:
        """Reading requests for each job."""
        reads = sum(count for (verb, _), count in self.asked.items() if verb in _READS)
        return reads / self.jobs if self.jobs else math.nan

    @property
    def packed(self) -> float:
        """GPUs in use as a percentage of the best possible packing; NaN without any."""
        return 100 * self.held / self.best if self.best else math.nan

    def lines(self, first: Result) -> Iterator[str]:
        """Yield the row of the table, and further lines below it."""
        yield self.line(first)
        over, planned = self.waves
        if over < planned:
            yield f"{'':12} | ended: these are the figures of {over} of {planned} waves"
        yield f"{'':12} | {memory.line(self.memory)}"
        if self.jobs:
            yield f"{'':12} | API calls a job: {self._most_asked()}"

    def _most_asked(self) -> str:
        """Return the most frequent requests for each job, by verb and resource."""
        most = self.asked.most_common(_MOST_SHOWN)
        return ", ".join(f"{verb} {resource} {count / self.jobs:.1f}" for (verb, resource), count in most)

    def line(self, first: Result) -> str:
        """Return the row of the table. first: the row for ratios."""
        ratio = self.admitted_per_second / first.admitted_per_second
        return (
            f"{self.title:12} | {self.admitted_per_second:10.1f}  {ratio:5.2f} "
            f"| {percentile(self.to_admission, 50):18.1f}  {percentile(self.to_admission, 99):5.1f} "
            f"| {percentile(self.to_start, 50):14.1f}  {percentile(self.to_start, 99):5.1f} "
            f"| {self.held:11}  {self.packed:5.1f} %  {self.halves:10} "
            f"| {self.calls:15.1f}  {self.reads:5.1f}  {self.calls / first.calls:5.2f}"
        )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile of sorted values (nearest rank); NaN without values."""
    if not values:
        return math.nan
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]
