"""Failures on demand: the next calls that match a pattern are throttled, refused or end badly."""

from __future__ import annotations

import fnmatch

from emulator.azure.store import Fault, State

THROTTLE, CONFLICT, FAILED, STUCK = "throttle", "conflict", "failed", "stuck"
UNAVAILABLE, TIMEOUT = "unavailable", "timeout"
KINDS = {
    THROTTLE: "answer 429 with Retry-After",
    CONFLICT: "answer 409: another operation is in progress",
    FAILED: "accept the operation, and let it end in state Failed",
    UNAVAILABLE: "answer 503",
    TIMEOUT: "accept the operation, and answer 504",
    STUCK: "accept the operation, or take up the registration of a feature, and let it go on until `clear`",
}


def take(state: State, names: list[str]) -> str | None:
    """Use up the next fault whose pattern matches one of the names; return its kind."""
    for fault in state.faults:
        if matches(fault.on, names):
            fault.times -= 1
            state.faults = [each for each in state.faults if each.times > 0]
            return fault.kind
    return None


def matches(pattern: str, names: list[str]) -> bool:
    """Tell whether a pattern (fnmatch, any case of letters) matches one of the names."""
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in names)


def add(state: State, on: str, kind: str, times: int) -> None:
    """Plan a failure. Raises ValueError for an unknown kind or a number below 1."""
    if kind not in KINDS:
        raise ValueError(f"{kind} is no kind of fault; there are {', '.join(KINDS)}")
    if times < 1:
        raise ValueError(f"a fault happens at least once, not {times} times")
    state.faults.append(Fault(on, kind, times))


def clear(state: State) -> None:
    """Drop the planned failures, and let operations that were stuck come to their end."""
    state.faults = []
    for record in state.resources.values():
        if record.operation is not None and record.operation.ends is None:
            record.operation.ends = 0.0
