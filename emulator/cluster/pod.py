"""One pod of the local kubelet, from its creation to its deletion."""

import collections
import contextlib
import logging
import shutil
import signal
import socket
import threading
import time
from datetime import UTC, datetime

from emulator.cluster.api import ApiError, Object, is_ready, unless_gone
from emulator.cluster.container import Container
from emulator.cluster.errors import MissingError, UnknownImageError, UnsupportedError
from emulator.cluster.node import NODE_ADDRESS
from emulator.cluster.pod_content import Host, PodContent
from emulator.cluster.pod_sandbox import PodSandbox, SandboxError
from emulator.cluster.pod_status import FINISHED, StatusWriter, Termination, phase

_log = logging.getLogger(__name__)
_TICK = 5.0
_RETRY = 1.0
_DEFAULT_GRACE = 30
_STOP_GRACE = 4.0


class PodWorker:
    """Runs one pod in its own thread until it is deleted from the API server, or until `stop`.

    The thread compares the pod with its processes, takes a step, writes the status if it changed, and sleeps until an
    event or a due time. It creates the pod's sandbox when everything that the sandbox needs exists.
    """

    def __init__(self, host: Host, pod: Object, address: str) -> None:
        self.address = address
        self.namespace: str = pod["metadata"]["namespace"]
        self.name: str = pod["metadata"]["name"]
        self.uid: str = pod["metadata"]["uid"]
        before = pod.get("status") or {}
        conditions = before.get("conditions") or []
        self.was_ready = is_ready(pod)
        self._host = host
        self._pod = pod
        self._folder = host.pods / self.uid
        self._content = PodContent(host, self._folder, address)
        self._containers = [Container.of(spec, pod) for spec in pod["spec"]["containers"]]
        self._finished = before.get("phase") in FINISHED
        started = before.get("startTime")
        start_time = datetime.fromisoformat(started) if started else datetime.now(UTC)
        self._status = StatusWriter(NODE_ADDRESS, address, start_time)
        self._status.remember(conditions)
        self._written: Object = {}
        self._sandbox: PodSandbox | None = None
        self._events: collections.deque[tuple[str, str, str]] = collections.deque()
        self._wake = threading.Event()
        self._stopping = False
        self.thread = threading.Thread(target=self._run, name=f"pod {self}", daemon=True)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def ready(self) -> bool:
        """Whether all containers run and are ready."""
        return all(container.state.started is not None and container.state.ready for container in self._containers)

    def wake(self) -> None:
        """Make the worker look again, because the pod or an object that it uses has changed."""
        self._wake.set()

    def stop(self) -> None:
        """Stop the pod's processes and the thread. The pod stays in the API server."""
        self._stopping = True
        self._wake.set()

    def connect(self, port: int) -> socket.socket:
        """Return a socket connected to a port of the pod. Raises SandboxError if that fails."""
        current = self._sandbox
        if current is None:
            raise SandboxError(f"pod {self} is not running")
        return current.connect(port)

    def _run(self) -> None:
        while True:
            pause: float | None = _RETRY
            try:
                pause = self._step()
            except ApiError as error:
                _log.info("pod %s: %s", self, error)
            except Exception:
                _log.exception("pod %s", self)
            if pause is None:
                return
            self._wake.wait(pause)
            self._wake.clear()

    def _step(self) -> float | None:
        """Do what is due. Return the seconds until the next look, or None if the pod is finished."""
        if self._stopping:
            self._end(_STOP_GRACE)
            return None
        found = self._host.pod(self.namespace, self.name)
        if found is None or found["metadata"]["uid"] != self.uid:
            self._end(0.0)
            shutil.rmtree(self._folder, ignore_errors=True)
            return None
        self._pod = found
        if "deletionTimestamp" in found["metadata"]:
            self._delete()
            return None
        if self._finished:
            return _TICK
        pause = self._sync()
        self._report()
        if phase([container.state for container in self._containers]) in FINISHED:
            self._finished = True
            self._end(0.0)
        return pause

    def _sync(self) -> float:
        """Take the next step for the containers; return the seconds until the following step."""
        if self._sandbox is None:
            self._set_up()
        self._take_events()
        if self._sandbox is None:
            return _RETRY
        try:
            self._content.write_volumes(self._pod)
        except MissingError as error:
            # Like in a kubelet, the mounted files stay unchanged.
            _log.info("pod %s: volumes not refreshed: %s", self, error)
        return min(self._start_due(self._sandbox), self._probe())

    def _set_up(self) -> None:
        try:
            self._content.check(self._pod)
        except (UnknownImageError, UnsupportedError, MissingError) as error:
            for container in self._containers:
                container.wait(error.reason, str(error))
            return
        log = self._host.logs / f"{self.namespace}_{self.name}.sandbox.log"
        host = self._host
        self._sandbox = PodSandbox(host.isolation, self.name, host.server, log, self._receive, host.join)

    def _receive(self, name: str, what: str, detail: str) -> None:
        self._events.append((name, what, detail))
        self._wake.set()

    def _take_events(self) -> None:
        now = datetime.now(UTC)
        while self._events:
            name, what, detail = self._events.popleft()
            if what == "gone":
                # The sandbox was killed, and its containers with it. The next step creates a new one.
                for container in self._containers:
                    if container.lives:
                        container.end(Termination(-signal.SIGKILL, container.state.started or now, now))
                self._close()
                return
            container = next(item for item in self._containers if item.name == name)
            if what == "started":
                container.begin(now)
            elif what == "failed":
                container.end(Termination(128, now, now, "StartError", detail))
            else:
                container.end(Termination(int(detail), container.state.started or now, now))
            _log.info("pod %s: container %s %s %s", self, name, what, detail)

    def _start_due(self, sandbox: PodSandbox) -> float:
        """Start the containers that are due; return the seconds until the next start."""
        pause = _TICK
        for container in self._containers:
            if container.lives or container.state.ended is not None:
                continue
            left = container.start_at - time.monotonic()
            if left > 0:
                pause = min(pause, left)
                continue
            try:
                run = self._content.container(self._pod, container.spec)
            except MissingError as error:
                container.wait("CreateContainerConfigError", str(error))
                container.start_at = time.monotonic() + _RETRY
                continue
            container.starting = True
            if container.state.previous is not None:
                container.state.restarts += 1
            sandbox.start_container(run, self._host.logs / f"{self.namespace}_{self.name}_{container.name}.log")
        return pause

    def _probe(self) -> float:
        """Run the probes that are due and kill containers that fail; return the seconds until the next probe."""
        pause = _TICK
        for container in self._containers:
            if container.state.started is not None:
                due, failed = container.probe(self.connect)
                pause = min(pause, due - time.monotonic())
                if failed:
                    _log.warning("pod %s: %s of %s failed", self, failed, container.name)
                    self._signal(container, signal.SIGKILL)
        return max(pause, 0.05)

    def _delete(self) -> None:
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds")
        self._end(float(_DEFAULT_GRACE if grace is None else grace))
        now = datetime.now(UTC)
        for container in self._containers:
            state = container.state
            state.ended = state.ended or state.previous or Termination(0, now, now)
            state.started = None
        with contextlib.suppress(ApiError):
            self._report()
        # Deletes the pod finally, now that its processes have ended.
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        with unless_gone():
            self._host.api.delete(self._path, {**options, "preconditions": {"uid": self.uid}})
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, grace: float) -> None:
        """Send SIGTERM to all containers and wait at most `grace` seconds. Closing the sandbox kills the rest."""
        deadline = time.monotonic() + grace
        for container in self._containers:
            self._signal(container, signal.SIGTERM)
        while self._sandbox is not None and any(container.lives for container in self._containers):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._wake.wait(min(left, 0.5))
            self._wake.clear()
            self._take_events()
        self._close()

    def _signal(self, container: Container, number: signal.Signals) -> None:
        if self._sandbox is not None and container.state.started is not None:
            with contextlib.suppress(SandboxError):
                self._sandbox.signal(container.name, number)

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
            self._events.clear()

    def _report(self) -> None:
        states = [container.state for container in self._containers]
        now = datetime.now(UTC)
        status = self._status.compute(self._pod, states, sandboxed=self._sandbox is not None, now=now)
        if status != self._written:
            with unless_gone():
                self._host.api.patch(f"{self._path}/status", {"metadata": {"uid": self.uid}, "status": status})
            self._written = status

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
