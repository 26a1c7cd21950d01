"""Which versions of operators, NVIDIA driver and Kubernetes go together, and what each can do, as data with sources.

A combination that upstream says works is known to work; one that upstream, or a fault that was reported, says does not
work is broken; about all others nobody has said anything, which is worth a warning but no refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """What is known about a combination."""

    WORKS = "works"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Combination:
    """What a stack installs.

    network_operator: None without InfiniBand. driver: None where the nodes come with one. kubernetes: `1.35` or
    `1.35.6`.
    """

    gpu_operator: str
    network_operator: str | None
    driver: str | None
    kubernetes: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a source says about combinations.

    Each of the four holds for the versions it lists, and for all where it lists none. kubernetes: first and last minor
    version; in a row that says "broken", those outside of these are what is broken when `outside` is set.
    reason, fix: for the reader of an error; empty in a row that says "works". in a fix, `{kubernetes}` stands for the
    setting of the cluster's version.
    """

    verdict: Verdict
    source: str
    gpu_operators: tuple[str, ...] = ()
    network_operators: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    kubernetes: tuple[str, str] | None = None
    outside: bool = False
    reason: str = ""
    fix: str = ""

    def covers(self, combination: Combination) -> bool:
        """Whether the row says something about a combination."""
        if self.network_operators and combination.network_operator not in self.network_operators:
            return False
        if self.gpu_operators and combination.gpu_operator not in self.gpu_operators:
            return False
        if self.drivers and combination.driver is not None and combination.driver not in self.drivers:
            return False
        if self.kubernetes is None:
            return True
        first, last = (_minor(version) for version in self.kubernetes)
        return (first <= _minor(combination.kubernetes) <= last) != self.outside


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The verdict on a combination, why, what to change, and who says so."""

    verdict: Verdict
    reason: str
    fix: str
    source: str


_DOCS: Final = "https://github.com/NVIDIA/cloud-native-docs/blob"
_MATRIX_26_3: Final = f"{_DOCS}/ee48878104ac0215d0d97b722636fdac4a6c2141/gpu-operator"
_MATRIX_26_7: Final = f"{_DOCS}/52dcb7b8d956784344e241df476de17094a4574c/gpu-operator"
_MATRIX_24_9: Final = f"{_DOCS}/f1ea3ff87eb29cfdce369f5399f517127d5da2e5/gpu-operator"
_CNS: Final = "https://github.com/NVIDIA/cloud-native-stack/blob/v26.6.0/README.md"
_NETWORK_DOCS: Final = "https://docs.nvidia.com/networking/display/kubernetes2612/platform-support.html"

DRIVERS_26_3: Final = (
    "580.126.20",
    "535.288.01",
    "535.309.01",
    "570.211.01",
    "580.159.03",
    "580.159.04",
    "580.167.08",
    "580.173.02",
    "580.178.04",
    "590.48.01",
    "595.58.03",
    "595.71.05",
    "595.91.07",
    "610.57.04",
)
"""The drivers of GPU operator 26.3.3, its default first."""
DRIVERS_26_7: Final = ("595.91.07", "535.309.01", "580.173.02", "610.57.04")
DRIVERS_24_9: Final = ("550.127.05", "535.216.01", "560.35.03", "565.57.01")
"""Those of GPU operator 24.9.0, which no longer gets fixes (its life cycle policy from 25.10 on)."""

ROWS: Final = (
    Row(
        verdict=Verdict.WORKS,
        gpu_operators=("v26.3.3",),
        network_operators=("26.1.0", "26.1.2"),
        drivers=DRIVERS_26_3,
        kubernetes=("1.32", "1.35"),
        source=f"{_MATRIX_26_3}/life-cycle-policy.rst, {_MATRIX_26_3}/platform-support.rst, {_NETWORK_DOCS}",
    ),
    Row(
        verdict=Verdict.WORKS,
        gpu_operators=("v26.7.0",),
        network_operators=("26.1.0", "26.1.2"),
        drivers=DRIVERS_26_7,
        kubernetes=("1.33", "1.35"),
        source=f"{_MATRIX_26_7}/life-cycle-policy.rst, {_MATRIX_26_7}/platform-support.rst, {_NETWORK_DOCS}",
    ),
    Row(
        verdict=Verdict.WORKS,
        gpu_operators=("v24.9.0",),
        network_operators=("24.7.0",),
        drivers=DRIVERS_24_9,
        kubernetes=("1.24", "1.31"),
        source=f"{_MATRIX_24_9}/life-cycle-policy.rst, {_MATRIX_24_9}/platform-support.rst",
    ),
    Row(
        verdict=Verdict.BROKEN,
        gpu_operators=("v26.3.2",),
        network_operators=("26.4.0",),
        reason="GPU operator 26.3.2 does not support RDMA with network operator 26.4.0",
        fix="set gpu.fabric.operatorVersion to 26.1.0, and gpu.operatorVersion to v26.3.3",
        source=_CNS,
    ),
    Row(
        verdict=Verdict.BROKEN,
        gpu_operators=("v26.3.2",),
        reason="its device plugin gives every container with a GPU all InfiniBand devices of its node",
        fix="set gpu.operatorVersion to v26.3.3, which corrects it",
        source=f"{_MATRIX_26_3}/release-notes.rst, 26.3.3, fixed issues",
    ),
    Row(
        verdict=Verdict.BROKEN,
        network_operators=("26.1.0", "26.1.2", "26.4.0"),
        kubernetes=("1.31", "1.35"),
        outside=True,
        reason="this network operator supports Kubernetes 1.31 to 1.35",
        fix="set {kubernetes} to 1.35, or gpu.fabric.enabled to false where no job uses InfiniBand",
        source=f"{_CNS}, {_NETWORK_DOCS}",
    ),
    Row(
        verdict=Verdict.BROKEN,
        gpu_operators=("v26.7.0",),
        kubernetes=("1.33", "1.36"),
        outside=True,
        reason="GPU operator 26.7.0 supports Kubernetes 1.33 to 1.36 on Ubuntu",
        fix="set {kubernetes} to 1.35",
        source=f"{_MATRIX_26_7}/platform-support.rst",
    ),
    Row(
        verdict=Verdict.BROKEN,
        gpu_operators=("v24.9.0",),
        kubernetes=("1.24", "1.31"),
        outside=True,
        reason="GPU operator 24.9.0 supports Kubernetes 1.24 to 1.31",
        fix="set gpu.operatorVersion to v26.3.3, or {kubernetes} to a version of 1.31",
        source=f"{_MATRIX_24_9}/platform-support.rst",
    ),
)


def assess(
    combination: Combination, rows: Sequence[Row] = ROWS, *, kubernetes: str = "the Kubernetes version"
) -> Assessment:
    """Return what is known about a combination; a row that says "broken" outweighs one that says "works".

    Without InfiniBand, what a row says of a network operator does not matter for its being known to work.
    kubernetes: the setting that says which version the cluster has, for the fix.
    """
    for row in rows:
        if row.verdict is Verdict.BROKEN and row.covers(combination):
            fix = row.fix.format(kubernetes=kubernetes)
            return Assessment(verdict=Verdict.BROKEN, reason=row.reason, fix=fix, source=row.source)
    works = [row for row in rows if row.verdict is Verdict.WORKS]
    for row in works:
        if row.covers(_with_known_network(combination, row)):
            return Assessment(verdict=Verdict.WORKS, reason="", fix="", source=row.source)
    return Assessment(
        verdict=Verdict.UNKNOWN,
        reason="no source says that these versions work together",
        fix=f"known to work: {'; '.join(_formatted(row) for row in works)}",
        source="",
    )


WITHOUT_CDI: Final = frozenset({"v24.9.0"})
"""The GPU operators that hand out GPUs by CDI only where a RuntimeClass is asked for, and leave NVIDIA's runtime the
default one (NVIDIA/gpu-operator v24.9.0, deployments/gpu-operator/values.yaml, cdi)."""

_RECLAIMS_WHILE_BORROWING: Final = (0, 19)


def reclaims_while_borrowing(kueue_version: str) -> bool:
    """Whether a Kueue gives a queue its idle GPUs back while that queue borrows of another resource.

    From v0.15.6 on it evicts for such a queue, whatever the shares, but admits the evicted job again first. The feature
    PrioritizePreemptorWorkloads of v0.19 mends that (kubernetes-sigs/kueue, CHANGELOG/CHANGELOG-0.15.md and #13662).
    """
    return numbers(kueue_version) >= _RECLAIMS_WHILE_BORROWING


KUEUE_KUBERNETES: Final = {"v0.19.2": "1.29", "v0.18.4": "1.29"}
"""The first Kubernetes version that each Kueue runs on (kubernetes-sigs/kueue, README.md, Installation). AppWrapper
names none."""

MONITORING_KUBERNETES: Final = "1.25"
"""The first Kubernetes version that Helm installs kube-prometheus-stack 88 on (prometheus-community/helm-charts,
charts/kube-prometheus-stack/Chart.yaml, kubeVersion)."""

VOLCANO_KUBERNETES: Final = {"1.15.0": (1, 35), "1.14.2": (1, 34)}
"""The newest Kubernetes version that each Volcano is made for. Source: volcano-sh/volcano, README.md, Kubernetes
compatibility, where 1.7 is not listed any more."""

SCHEDULER_PLUGINS_KUBERNETES: Final = {
    "v0.34.7": ("1.34", "1.35"),
    "v0.33.5": ("1.33", "1.34"),
    "v0.31.8": ("1.31", "1.32"),
    "v0.29.7": ("1.29", "1.30"),
}
"""The first and the last Kubernetes version that each scheduler-plugins goes with: the one that it is compiled with
(kubernetes-sigs/scheduler-plugins, README.md of each, Compatibility Matrix) and the next, since a scheduler may be one
minor version older than the API server and not newer (kubernetes.io, releases/version-skew-policy)."""


SAKKARA_KUBERNETES: Final = ("1.29", "1.30")
"""The same of Sakkara, which is compiled with 1.29 (project-codeflare/mlbatch, `tools/sakkara-deploy`, appVersion)."""


def goes_with(supported: tuple[str, str], kubernetes: str) -> bool:
    """Return whether a Kubernetes version, with or without its patch, lies in a range of minor versions."""
    return _minor(supported[0]) <= _minor(kubernetes) <= _minor(supported[1])


def is_older(kubernetes: str, first: str) -> bool:
    """Return whether a Kubernetes version, with or without its patch, is of an earlier minor version than another."""
    return _minor(kubernetes) < _minor(first)


def _with_known_network(combination: Combination, row: Row) -> Combination:
    if combination.network_operator is not None or not row.network_operators:
        return combination
    return Combination(
        gpu_operator=combination.gpu_operator,
        network_operator=row.network_operators[0],
        driver=combination.driver,
        kubernetes=combination.kubernetes,
    )


def _formatted(row: Row) -> str:
    first, last = row.kubernetes or ("any", "any")
    return (
        f"GPU operator {' or '.join(row.gpu_operators)} with network operator {' or '.join(row.network_operators)}, "
        f"driver {row.drivers[0]} and Kubernetes {first} to {last}"
    )


def _minor(version: str) -> tuple[int, ...]:
    """Return the first two numbers. What follows may be no number: of OpenShift there are 4.21.0-rc.1 and nightlies."""
    return numbers(".".join(version.split(".")[:2]))


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version such as v1.24.1."""
    return tuple(int(part) for part in version.removeprefix("v").split("."))
