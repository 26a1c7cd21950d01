"""One container of a pod: its specification, its current state, and its next start."""

from __future__ import annotations

import logging
import math
import signal
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from emulator.cluster.api import Object
from emulator.cluster.pod_status import CREATING, ContainerState, Termination, will_restart
from emulator.cluster.probes import Connect, Probe

_log = logging.getLogger(__name__)

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")

# A kubelet waits 10 s, doubles that up to 5 min, and resets it after 10 min. A local start is faster.
_FIRST_BACKOFF, _LONGEST_BACKOFF, _FORGET_AFTER = 1.0, 30.0, 60.0
_WITH_THE_KUBELET = ("ContainerStatusUnknown", "the kubelet ended")


@dataclass
class Container:
    """A container of a pod with a restart policy. Times are seconds of time.monotonic().

    starting: a start was requested and not confirmed yet.
    """

    spec: Object
    policy: str
    state: ContainerState
    probes: dict[str, Probe] = field(default_factory=dict)
    start_at: float = 0.0
    backoff: float = _FIRST_BACKOFF
    starting: bool = False

    @classmethod
    def of(cls, spec: Object, pod: Object) -> Container:
        """Return a container from its pod's status. A process of an earlier kubelet has ended with that kubelet."""
        state = ContainerState(name=spec["name"], image=spec["image"])
        container = cls(spec, pod["spec"].get("restartPolicy", "Always"), state)
        statuses = (pod.get("status") or {}).get("containerStatuses") or []
        found: Object = next((status for status in statuses if status["name"] == state.name), {})
        state.restarts = found.get("restartCount", 0)
        state.previous = Termination.of((found.get("lastState") or {}).get("terminated"))
        state.ended = Termination.of((found.get("state") or {}).get("terminated"))
        running = (found.get("state") or {}).get("running")
        if running:
            started = datetime.fromisoformat(running["startedAt"])
            container.end(Termination(-signal.SIGKILL, started, datetime.now(UTC), *_WITH_THE_KUBELET))
            container.start_at, state.waiting = 0.0, CREATING
        return container

    @property
    def lives(self) -> bool:
        """Whether it runs or is starting."""
        return self.starting or self.state.started is not None

    @property
    def name(self) -> str:
        """The container's name."""
        return self.state.name

    def wait(self, reason: str, message: str) -> None:
        """Record the reason for waiting."""
        if self.state.ended is None and self.state.waiting != (reason, message):
            _log.info("container %s waits: %s %s", self.name, reason, message)
            self.state.waiting = (reason, message)

    def begin(self, now: datetime) -> None:
        """Record that it runs, and start its probes."""
        self.starting = False
        self.state.started, self.state.ended = now, None
        moment = time.monotonic()
        found = {kind: Probe.of(self.spec, kind, moment) for kind in PROBES}
        self.probes = {kind: probe for kind, probe in found.items() if probe is not None}
        self.state.startup_passed = "startupProbe" not in self.probes
        self.state.ready = not self.probes.keys() & {"startupProbe", "readinessProbe"}

    def end(self, ended: Termination) -> None:
        """Record an end. The pod's restart policy decides about a restart, after a growing pause."""
        state = self.state
        self.starting = False
        state.started, state.ready, state.startup_passed = None, False, False
        if not will_restart(self.policy, ended.code):
            state.ended = ended
            return
        state.previous = ended
        if (ended.finished - ended.started).total_seconds() > _FORGET_AFTER:
            self.backoff = _FIRST_BACKOFF
        pause = self.backoff
        self.start_at = time.monotonic() + pause
        self.backoff = min(2 * pause, _LONGEST_BACKOFF)
        state.waiting = ("CrashLoopBackOff", f"back-off {pause:.0f}s restarting failed container {state.name}")

    def probe(self, connect: Connect) -> tuple[float, str]:
        """Run the probes that are due. Return the time of the next one, and the kind of a finally failed one."""
        now, state = time.monotonic(), self.state
        startup, readiness, liveness = (self.probes.get(kind) for kind in PROBES)
        if startup is not None and not state.startup_passed:
            state.startup_passed = startup.run(connect, now)
            if not state.startup_passed:
                return startup.due, "startupProbe" if startup.is_hopeless(now) else ""
        state.ready = readiness is None or readiness.run(connect, now)
        alive = liveness is None or liveness.run(connect, now)
        due = [found.due for found in (readiness, liveness) if found is not None]
        return min(due, default=math.inf), "" if alive else "livenessProbe"
