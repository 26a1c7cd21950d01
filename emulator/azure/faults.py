"""Failures on demand: the next calls that match a pattern are throttled, rejected or fail."""

import fnmatch

from emulator.azure.store import Fault, State

THROTTLE, CONFLICT, FAILED, STUCK = "throttle", "conflict", "failed", "stuck"
UNAVAILABLE, TIMEOUT = "unavailable", "timeout"
KINDS = {
    THROTTLE: "answer 429 with Retry-After",
    CONFLICT: "answer 409: another operation is in progress",
    FAILED: "accept the operation, which then ends in state Failed",
    UNAVAILABLE: "answer 503",
    TIMEOUT: "accept the operation, but answer 504",
    STUCK: "accept the operation or the registration of a feature, which then runs until `clear`",
}


def take(state: State, names: list[str]) -> str | None:
    """Return the kind of the next fault whose pattern matches one of the names, and count it. None if none matches."""
    for fault in state.faults:
        if matches(fault.on, names):
            fault.times -= 1
            state.faults = [each for each in state.faults if each.times > 0]
            return fault.kind
    return None


def matches(pattern: str, names: list[str]) -> bool:
    """Tell whether a pattern (fnmatch, ignoring case) matches one of the names."""
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in names)


def add(state: State, on: str, kind: str, times: int) -> None:
    """Plan a failure. Raises ValueError for an unknown kind or a number below 1."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind of fault: {kind}. Use one of {', '.join(KINDS)}")
    if times < 1:
        raise ValueError(f"a fault cannot happen {times} times. Give 1 or more")
    state.faults.append(Fault(on, kind, times))


def clear(state: State) -> None:
    """Remove the planned failures and let stuck operations end."""
    state.faults = []
    for record in state.resources.values():
        if record.operation is not None and record.operation.ends is None:
            record.operation.ends = 0.0
