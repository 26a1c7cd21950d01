"""The result of the two matrix multiplications that share a GPU. Simulated pods do not give a result."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

JOB: Final = "nvshare-tf-matmul"
NAMESPACE: Final = "nvshare-system"
SELECTOR: Final = f"batch.kubernetes.io/job-name={JOB}"
PODS: Final = 2

_TIMED_OUT: Final = 124
"""Exit code of coreutils' `timeout` for a command that it ended."""
_PASS: Final = re.compile(r"PASS\n--- (\d+\.\d+) seconds ---\s*")
"""The last lines of upstream's program (grgalex/nvshare, tests/tf-matmul.py)."""


class Verdict(StrEnum):
    """The result of a test, worst first. The worst result of several pods counts."""

    FAILED = "failed"
    TIMED_OUT = "timed out"
    UNKNOWN = "unknown"
    PASSED = "passed"


def verdict(pods: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return the result of a test from its pods. It passed only if all pods exist and each reported it."""
    found = {_of(pod) for pod in pods} | ({Verdict.UNKNOWN} if len(pods) != PODS else set())
    return next(each for each in Verdict if each in found)


def seconds(pods: Sequence[Mapping[str, Any]]) -> str:
    """Return the durations of the pods that passed, such as `238.7 s, 219.0 s`, or `-` if none did."""
    ended = [match for pod in pods if (match := _PASS.fullmatch(_ended(pod).get("message") or ""))]
    return ", ".join(f"{float(match[1]):.1f} s" for match in ended) or "-"


def _of(pod: Mapping[str, Any]) -> Verdict:
    """Return the result of one pod. A real kubelet reports an image id for a container. A simulation does not."""
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
