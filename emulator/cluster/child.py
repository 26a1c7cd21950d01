"""One supervised process: start, watch and restart."""

import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.cluster.api import ApiError
from emulator.cluster.cluster_status import ProcessStatus
from emulator.cluster.controlplane import ProcessSpec

_log = logging.getLogger("supervisor")
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 15.0
_CHECK_AGAIN = 5.0
_FAILURES_BEFORE_FAILED = 3
_LOG_LIMIT = 20 * 1024 * 1024


@dataclass
class Child:
    """A process and its history.

    failures: how often in a row it ended before it was ready; it sets the pause before the next start.
    """

    spec: ProcessSpec
    log: Path
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    restarts: int = 0
    failures: int = 0
    start_at: float = 0.0
    check_at: float = 0.0

    @property
    def state(self) -> str:
        """The state, in the words of `ProcessStatus`."""
        if self.failures >= _FAILURES_BEFORE_FAILED:
            return "failed"
        if self.process is None:
            return "restarting" if self.restarts else "waiting"
        return "running" if self.ready else "starting"

    @property
    def status(self) -> ProcessStatus:
        """The status for reports."""
        pid = self.process.pid if self.process else None
        return ProcessStatus(self.spec.name, pid, self.state, self.restarts, self.log)

    def start(self, environment: dict[str, str], folder: Path, before: Callable[[], None]) -> None:
        """Start the process. Its output is appended to its log."""
        try:
            self.spec.prepare()
        except ApiError as error:
            self._ended(f"cannot be prepared: {error}")
            return
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            try:
                self.process = subprocess.Popen(
                    self.spec.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    cwd=folder,
                    preexec_fn=before,  # noqa: PLW1509 (the supervisor has one thread)
                )
            except OSError as error:
                log.write(f"cannot start {self.spec.command[0]}: {error}\n".encode())
                self._ended(f"cannot start: {error}")
                return
        self.ready = False
        self.check_at = 0.0
        _log.info("%s started, pid %d", self.spec.name, self.process.pid)

    def look(self, now: float) -> None:
        """Detect the end of the process, and check readiness when it is due."""
        if self.process is None:
            return
        code = self.process.poll()
        if code is not None:
            self._ended(f"ended with {code}")
        elif now >= self.check_at:
            ready = self.spec.ready()
            if ready and not self.ready:
                _log.info("%s is ready", self.spec.name)
            if ready:
                self.failures = 0
            self.ready = ready
            self.check_at = now + (_CHECK_AGAIN if ready else 0.0)

    def forget(self) -> None:
        """Reset, as if it had never run."""
        self.process, self.ready, self.failures, self.start_at = None, False, 0, 0.0

    def _ended(self, how: str) -> None:
        self.process = None
        self.failures = 0 if self.ready else self.failures + 1
        self.ready = False
        self.restarts += 1
        pause = min(_FIRST_PAUSE * 2**self.failures, _LONGEST_PAUSE)
        self.start_at = time.monotonic() + pause
        _log.warning("%s %s; restart in %.1f s", self.spec.name, how, pause)


def stop(children: Sequence[Child]) -> None:
    """Stop children in reverse order of dependence. Each is killed if it does not end in time."""
    left = [child for child in children if child.process is not None]
    while left:
        needed = {name for child in left for name in child.spec.after}
        ending = [child for child in left if child.spec.name not in needed]
        _log.info("stopping %s", ", ".join(child.spec.name for child in ending))
        for child in ending:
            if child.process is not None:
                child.process.terminate()
        started = time.monotonic()
        for child in ending:
            if child.process is not None:
                _wait(child.process, child.spec, started)
        left = [child for child in left if child not in ending]


def _wait(process: subprocess.Popen[bytes], spec: ProcessSpec, started: float) -> None:
    try:
        process.wait(max(0.0, started + spec.stop_seconds - time.monotonic()))
    except subprocess.TimeoutExpired:
        _log.warning("%s did not end in %.0f s: killed", spec.name, spec.stop_seconds)
        process.kill()
        process.wait()
