"""Which versions of operators, NVIDIA driver and Kubernetes go together, and what each can do, from compatibility.yaml.

A combination works if upstream says so. It is broken if upstream or a bug report says so. All others are unknown, and
only cause a warning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from components.tables import Table


class Verdict(StrEnum):
    """What is known about a combination."""

    WORKS = "works"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Combination:
    """The versions that a stack installs.

    network_operator: None without InfiniBand.
    driver: None if the nodes already have one.
    kubernetes: `1.35` or `1.35.6`.
    gpu: product of the nodes' GPUs, such as `Tesla-P100-PCIE-16GB`. Empty if unknown.
    """

    gpu_operator: str
    network_operator: str | None
    driver: str | None
    kubernetes: str
    gpu: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A source's statement about combinations.

    It applies to the listed versions. An empty list matches all versions.
    kubernetes: first and last minor version.
    outside: a "broken" row applies to versions outside this range.
    gpus: parts of the products' names.
    reason, fix: for the error's reader. Empty in a "works" row. In a fix, `{kubernetes}` is replaced by the setting of
    the cluster's version.
    """

    verdict: Verdict
    source: str
    gpu_operators: tuple[str, ...] = ()
    network_operators: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    kubernetes: tuple[str, str] | None = None
    outside: bool = False
    gpus: tuple[str, ...] = ()
    reason: str = ""
    fix: str = ""

    def covers(self, combination: Combination) -> bool:
        """Return whether the row applies to a combination."""
        if self.network_operators and combination.network_operator not in self.network_operators:
            return False
        if self.gpu_operators and combination.gpu_operator not in self.gpu_operators:
            return False
        if self.gpus and not any(model in combination.gpu for model in self.gpus):
            return False
        if self.drivers and combination.driver is not None and combination.driver not in self.drivers:
            return False
        if self.kubernetes is None:
            return True
        first, last = (_minor(version) for version in self.kubernetes)
        return (first <= _minor(combination.kubernetes) <= last) != self.outside


class _Compatibility(Table):
    rows: tuple[Row, ...]
    without_cdi: frozenset[str]
    kueue: Mapping[str, str]
    monitoring: str
    volcano: Mapping[str, tuple[int, int]]
    scheduler_plugins: Mapping[str, tuple[str, str]]
    sakkara: tuple[str, str]


_COMPATIBILITY: Final = _Compatibility.load(__name__)
ROWS: Final = _COMPATIBILITY.rows
WITHOUT_CDI: Final = _COMPATIBILITY.without_cdi
KUEUE_KUBERNETES: Final = _COMPATIBILITY.kueue
MONITORING_KUBERNETES: Final = _COMPATIBILITY.monitoring
VOLCANO_KUBERNETES: Final = _COMPATIBILITY.volcano
SCHEDULER_PLUGINS_KUBERNETES: Final = _COMPATIBILITY.scheduler_plugins
SAKKARA_KUBERNETES: Final = _COMPATIBILITY.sakkara
_RECLAIMS_WHILE_BORROWING: Final = (0, 19)


def assess(combination: Combination, *, kubernetes: str = "the Kubernetes version") -> Row:
    """Return what is known about a combination. A "broken" row overrides a "works" row.

    Without InfiniBand, a row's network operator is ignored for the verdict "works".
    kubernetes: the setting of the cluster's version, for the fix.
    """
    for row in ROWS:
        if row.verdict is Verdict.BROKEN and row.covers(combination):
            return replace(row, fix=row.fix.format(kubernetes=kubernetes))
    works = [row for row in ROWS if row.verdict is Verdict.WORKS]
    for row in works:
        if row.covers(_with_known_network(combination, row)):
            return row
    return Row(
        verdict=Verdict.UNKNOWN,
        reason="no source says that these versions work together",
        fix=f"known to work: {'; '.join(_formatted(row) for row in works)}",
        source="",
    )


def reclaims_while_borrowing(kueue_version: str) -> bool:
    """Return whether a queue can reclaim its idle GPUs while it borrows another resource.

    From v0.15.6 on, Kueue preempts for such a queue independent of the shares, but then admits the preempted job again
    first. The feature PrioritizePreemptorWorkloads of v0.19 fixes that (kubernetes-sigs/kueue,
    CHANGELOG/CHANGELOG-0.15.md and #13662).
    """
    return numbers(kueue_version) >= _RECLAIMS_WHILE_BORROWING


def goes_with(supported: tuple[str, str], kubernetes: str) -> bool:
    """Return whether a Kubernetes version, with or without its patch, is in a range of minor versions."""
    return _minor(supported[0]) <= _minor(kubernetes) <= _minor(supported[1])


def is_older(kubernetes: str, first: str) -> bool:
    """Return whether the minor version of a Kubernetes version, with or without its patch, is older than another."""
    return _minor(kubernetes) < _minor(first)


def _with_known_network(combination: Combination, row: Row) -> Combination:
    if combination.network_operator is not None or not row.network_operators:
        return combination
    return replace(combination, network_operator=row.network_operators[0])


def _formatted(row: Row) -> str:
    first, last = row.kubernetes or ("any", "any")
    return (
        f"GPU operator {' or '.join(row.gpu_operators)} with network operator {' or '.join(row.network_operators)}, "
        f"driver {row.drivers[0]} and Kubernetes {first} to {last}"
    )


def _minor(version: str) -> tuple[int, ...]:
    """Return the first two numbers. The rest may be no number, as in OpenShift's 4.21.0-rc.1 and nightlies."""
    return numbers(".".join(version.split(".")[:2]))


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version such as v1.24.1."""
    return tuple(int(part) for part in version.removeprefix("v").split("."))
