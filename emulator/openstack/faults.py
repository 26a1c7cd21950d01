"""Faults that are planned for calls to services: kept in a file, taken by whoever serves the call."""

from __future__ import annotations

import fcntl
import fnmatch
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

FAIL: Final = "fail"
TIMEOUT: Final = "timeout"
HANG: Final = "hang"
KINDS: Final = {
    FAIL: "the call is not done, and answered 503 Service Unavailable",
    TIMEOUT: "the call is done, and answered 504 Gateway Timeout, as by a proxy that did not wait for the answer",
    HANG: "the call is begun a minute late",
}


@dataclass(frozen=True)
class Fault:
    """What happens to the next calls of a kind.

    service: whose. call: a pattern (fnmatch) for method and path, as `POST */servers`. kind: of KINDS. times: how often
    still.
    """

    service: str
    call: str
    kind: str
    times: int


class Faults:
    """The faults in one file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def planned(self) -> list[Fault]:
        """Return what is still to happen."""
        try:
            return [Fault(**each) for each in json.loads(self._file.read_text())]
        except FileNotFoundError:
            return []

    def plan(self, fault: Fault) -> None:
        """Have it happen, after what is planned."""
        with self._changing() as faults:
            faults.append(fault)

    def clear(self) -> None:
        """Drop all."""
        with self._changing() as faults:
            faults.clear()

    def take(self, service: str, call: str) -> str | None:
        """Return the kind of the first fault that is planned for a call, which is spent with it; else None."""
        if not any(_meets(each, service, call) for each in self.planned()):
            return None
        with self._changing() as faults:
            for index, fault in enumerate(faults):
                if _meets(fault, service, call):
                    faults[index] = replace(fault, times=fault.times - 1)
                    return fault.kind
        return None

    @contextmanager
    def _changing(self) -> Iterator[list[Fault]]:
        with open(self._file.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            faults = self.planned()
            yield faults
            unfinished = self._file.with_suffix(".unfinished")
            unfinished.write_text(json.dumps([asdict(each) for each in faults if each.times > 0]))
            os.replace(unfinished, self._file)


def _meets(fault: Fault, service: str, call: str) -> bool:
    return fault.service == service and fnmatch.fnmatchcase(call, fault.call)
