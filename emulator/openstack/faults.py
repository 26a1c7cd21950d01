"""Planned faults of calls to services, in a file that the services read."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from runner.files import locked, replacing

FAIL: Final = "fail"
TIMEOUT: Final = "timeout"
HANG: Final = "hang"
KINDS: Final = {
    FAIL: "do not run the call, answer 503 Service Unavailable",
    TIMEOUT: "run the call, answer 504 Gateway Timeout, like a proxy that did not wait for the response",
    HANG: "run the call a minute late",
}


@dataclass(frozen=True)
class Fault:
    """A fault of the next matching calls.

    service: the service.
    call: a pattern (fnmatch) for method and path, such as `POST */servers`.
    kind: one of KINDS.
    times: the number of remaining calls.
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
        """Return the remaining faults."""
        try:
            return [Fault(**each) for each in json.loads(self._file.read_text())]
        except FileNotFoundError:
            return []

    def plan(self, fault: Fault) -> None:
        """Add a fault after the planned ones."""
        with self._changing() as faults:
            faults.append(fault)

    def clear(self) -> None:
        """Remove all faults."""
        with self._changing() as faults:
            faults.clear()

    def take(self, service: str, call: str) -> str | None:
        """Return the kind of the first fault planned for a call, and count it. None without one."""
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
        with locked(self._file.with_suffix(".lock")):
            faults = self.planned()
            yield faults
            with replacing(self._file) as unfinished:
                unfinished.write_text(json.dumps([asdict(each) for each in faults if each.times > 0]))


def _meets(fault: Fault, service: str, call: str) -> bool:
    return fault.service == service and fnmatch.fnmatchcase(call, fault.call)
