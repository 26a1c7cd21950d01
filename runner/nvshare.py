"""How the two matrix multiplications ended that share a GPU. A pod that was only simulated has shown nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

JOB: Final = "nvshare-tf-matmul"
NAMESPACE: Final = "nvshare-system"
SELECTOR: Final = f"batch.kubernetes.io/job-name={JOB}"
PODS: Final = 2

_TIMED_OUT: Final = 124
"""Exit code of coreutils' `timeout` for what it has ended."""
_PASS: Final = re.compile(r"PASS\n--- (\d+\.\d+) seconds ---\s*")
"""The last lines of upstream's program (grgalex/nvshare, tests/tf-matmul.py)."""


class Verdict(StrEnum):
    """What is known of a test, the worst first: of several, the first one counts."""

    FAILED = "failed"
    TIMED_OUT = "timed out"
    UNKNOWN = "unknown"
    PASSED = "passed"


def verdict(pods: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return how the test ended, by its pods: passed only where each has said so, and all of them are there."""
    found = {_of(pod) for pod in pods} | ({Verdict.UNKNOWN} if len(pods) != PODS else set())
    return next(each for each in Verdict if each in found)


def seconds(pods: Sequence[Mapping[str, Any]]) -> str:
    """Return how long those took that passed, such as `238.7 s, 219.0 s`; `-` where none did."""
    ended = [match for pod in pods if (match := _PASS.fullmatch(_ended(pod).get("message") or ""))]
    return ", ".join(f"{float(match[1]):.1f} s" for match in ended) or "-"


def _of(pod: Mapping[str, Any]) -> Verdict:
    """Return how a pod ended. A kubelet that has run a container names its image by an id; a simulation has none."""
    ended = _ended(pod)
    if not ended or not _status(pod).get("imageID"):
        return Verdict.UNKNOWN
    if ended["exitCode"] == _TIMED_OUT:
        return Verdict.TIMED_OUT
    if ended["exitCode"] != 0:
        return Verdict.FAILED
    return Verdict.PASSED if _PASS.fullmatch(ended.get("message") or "") else Verdict.UNKNOWN


def _status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return dict(statuses[0])


def _ended(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return (_status(pod).get("state") or {}).get("terminated") or {}
