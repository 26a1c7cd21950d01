"""One pod of the local node, from its appearance to its removal."""

from __future__ import annotations

import collections
import contextlib
import logging
import shutil
import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from emulator.cluster import downward, images, volumes
from emulator.cluster.api import ApiError, Object
from emulator.cluster.errors import MissingError, UnknownImageError, UnsupportedError
from emulator.cluster.pod_sandbox import API_PORT, ContainerRun, Mount, PodSandbox, SandboxError
from emulator.cluster.pod_status import ContainerState, StatusWriter, Termination, phase, will_restart
from emulator.cluster.probes import Probe

_log = logging.getLogger(__name__)
_TICK = 5.0
_RETRY = 1.0
# A kubelet waits 10 s, doubled up to 5 min, and forgets after 10 min; a local start-up should not take that long.
_FIRST_BACKOFF, _LONGEST_BACKOFF, _FORGET_AFTER = 1.0, 30.0, 60.0
_PLAYED_JOB = timedelta(seconds=1)
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_DEFAULT_GRACE = 30
_STOP_GRACE = 4.0


class Node(Protocol):
    """What a pod needs of the kubelet."""

    binaries: Path
    pods_folder: Path
    logs: Path
    address: str
    isolation: Sequence[str]
    api_address: tuple[str, int]

    def pod(self, key: tuple[str, str]) -> Object | None:
        """Return the pod as the API server has it."""

    def lookup(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return a ConfigMap or a Secret."""

    def token(self, pod: Object, audience: str, seconds: int) -> str:
        """Return a valid token of the pod's service account."""

    def write_status(self, pod: Object, status: Object) -> None:
        """Write the pod's status."""

    def remove(self, pod: Object) -> None:
        """Delete the pod from the API server for good."""


@dataclass
class _Container:
    """A container's specification, what is known of it now, and when it may start again."""

    spec: Object
    state: ContainerState
    probes: dict[str, Probe] = field(default_factory=dict)
    start_at: float = 0.0
    backoff: float = _FIRST_BACKOFF
    starting: bool = False
    launched: datetime | None = None


class PodWorker:
    """Runs one pod in a thread of its own until it is gone from the API server, or until `stop`.

    The thread looks at the pod, brings reality a step nearer to it, writes the status if it changed and sleeps until
    something happens or is due.
    """

    def __init__(self, node: Node, pod: Object, address: str) -> None:
        self.address = address
        self._node = node
        self._key: tuple[str, str] = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._uid: str = pod["metadata"]["uid"]
        self._folder = node.pods_folder / self._uid
        self._pod = pod
        self._wake = threading.Event()
        self._events: collections.deque[tuple[str, str, str]] = collections.deque()
        self._stopping = False
        self._sandbox: PodSandbox | None = None
        self._written: Object = {}
        self._problem: tuple[str, str] | None = None
        self._played = _played(pod)
        before = pod.get("status") or {}
        started = before.get("startTime")
        start_time = datetime.fromisoformat(started) if started else datetime.now(UTC)
        self._status = StatusWriter(node.address, address, start_time)
        self._status.remember(before.get("conditions") or [])
        self._containers = [_adopt(container, before) for container in pod["spec"]["containers"]]
        conditions = {found["type"]: found["status"] for found in before.get("conditions") or []}
        self.was_ready = conditions.get("Ready") == "True"
        self._finished = before.get("phase") in ("Succeeded", "Failed")
        if not self._finished and before.get("podIP") and not self._played:
            self._account_for_the_past()
        self.thread = threading.Thread(target=self._run, name=f"pod {'/'.join(self._key)}", daemon=True)

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self._uid

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self._key[0]

    @property
    def ready(self) -> bool:
        """Whether every container runs and is ready."""
        return all(item.state.started is not None and item.state.ready for item in self._containers)

    def wake(self) -> None:
        """Have the worker look again: the pod, or something it may use, has changed."""
        self._wake.set()

    def stop(self) -> None:
        """End the pod's processes and the thread; the pod stays in the API server."""
        self._stopping = True
        self._wake.set()

    def connect(self, port: int) -> socket.socket:
        """Return a socket connected to a port of the pod. Raises SandboxError when that is refused."""
        current = self._sandbox
        if current is None:
            what = "is only played" if self._played else "is not running"
            raise SandboxError(f"pod {'/'.join(self._key)} {what}")
        return current.connect(port)

    def _run(self) -> None:
        while True:
            pause = _RETRY
            try:
                again = self._step()
                if again is None:
                    return
                pause = again
            except ApiError as error:
                _log.info("pod %s/%s: %s", *self._key, error)
            except Exception:
                _log.exception("pod %s/%s", *self._key)
            self._wake.wait(pause)
            self._wake.clear()

    def _step(self) -> float | None:
        """Do what is due; return the seconds until the next look, or None when the pod is over."""
        if self._stopping:
            self._end_containers(_STOP_GRACE)
            self._close()
            return None
        found = self._node.pod(self._key)
        if found is None or found["metadata"]["uid"] != self._uid:
            self._end_containers(0.0)
            self._clean()
            return None
        self._pod = found
        if "deletionTimestamp" in found["metadata"]:
            self._delete()
            return None
        if self._finished:
            return _TICK
        if self._played:
            return self._play()
        if self._sandbox is None:
            self._set_up()
        pause = _RETRY if self._problem else _TICK
        if self._sandbox is not None:
            self._take_events()
        if self._sandbox is not None:
            self._refresh_volumes()
            pause = min(pause, self._start_due(), self._probe())
        self._report()
        if phase([item.state for item in self._containers]) in ("Succeeded", "Failed"):
            self._finished = True
            self._close()
        return pause

    def _play(self) -> float:
        """Let containers that nothing stands for run and be ready; those of a Job's pod complete after a moment."""
        now = datetime.now(UTC)
        ends = self._pod["spec"].get("restartPolicy", "Always") != "Always"
        for container in self._containers:
            state = container.state
            if state.ended is not None:
                continue
            state.started = state.started or now
            state.ready = state.startup_passed = True
            if ends and now >= state.started + _PLAYED_JOB:
                state.ended = Termination(0, state.started, now)
                state.started, state.ready = None, False
        self._report()
        if phase([item.state for item in self._containers]) == "Succeeded":
            self._finished = True
        return _RETRY if ends else _TICK

    def _set_up(self) -> None:
        """Make volumes and sandbox, once everything the pod needs is there."""
        try:
            _refuse_unsupported(self._pod)
            for container in self._containers:
                images.resolve(container.spec["image"], self._node.binaries)
            self._write_volumes()
            for container in self._containers:
                self._environment(container)
        except UnknownImageError as error:
            self._wait_for("ErrImagePull", str(error))
            return
        except UnsupportedError as error:
            self._wait_for("CreateContainerConfigError", str(error))
            return
        except MissingError as error:
            self._wait_for("ContainerCreating", str(error))
            return
        self._problem = None
        log = self._node.logs / f"{'_'.join(self._key)}.sandbox.log"
        self._sandbox = PodSandbox(self._node.isolation, self._key[1], self._node.api_address, log, self._receive)

    def _wait_for(self, reason: str, message: str) -> None:
        if self._problem != (reason, message):
            _log.info("pod %s/%s waits: %s %s", *self._key, reason, message)
        self._problem = (reason, message)
        for container in self._containers:
            if container.state.ended is None:
                container.state.waiting = (reason, message)

    def _account_for_the_past(self) -> None:
        """Count the containers that ran in an earlier life of the kubelet and ended with it."""
        now = datetime.now(UTC)
        policy = self._pod["spec"].get("restartPolicy", "Always")
        for container in self._containers:
            state = container.state
            if state.ended is None and state.started is not None:
                ended = Termination(-signal.SIGKILL, state.started, now, "ContainerStatusUnknown", "the kubelet ended")
                _settle(container, ended, policy)
                container.start_at = 0.0
                container.state.waiting = ("ContainerCreating", "")

    def _receive(self, name: str, what: str, detail: str) -> None:
        self._events.append((name, what, detail))
        self._wake.set()

    def _take_events(self) -> None:
        now = datetime.now(UTC)
        while self._events:
            name, what, detail = self._events.popleft()
            if what == "gone":
                self._lose_sandbox(now)
                return
            container = next(item for item in self._containers if item.state.name == name)
            container.starting = False
            if what == "started":
                self._started(container, now)
            else:
                self._ended(container, what, detail, now)

    def _lose_sandbox(self, now: datetime) -> None:
        """Somebody killed the sandbox: every container ended with it, and a new one has to be made."""
        for container in self._containers:
            if container.starting or container.state.started is not None:
                self._ended(container, "exited", str(-int(signal.SIGKILL)), now)
        if self._sandbox is not None:
            self._sandbox.close()
        self._sandbox = None
        self._events.clear()

    def _started(self, container: _Container, now: datetime) -> None:
        state = container.state
        state.started, state.ended = now, None
        moment = time.monotonic()
        found = {kind: Probe.of(container.spec, kind, moment) for kind in _PROBES}
        container.probes = {kind: probe for kind, probe in found.items() if probe is not None}
        state.startup_passed = "startupProbe" not in container.probes
        state.ready = not container.probes.keys() & {"startupProbe", "readinessProbe"}
        _log.info("pod %s/%s: container %s runs", *self._key, state.name)

    def _ended(self, container: _Container, what: str, detail: str, now: datetime) -> None:
        state = container.state
        if what == "failed":
            ended = Termination(128, now, now, "StartError", detail)
        else:
            ended = Termination(int(detail), state.started or now, now)
        if (ended.finished - ended.started).total_seconds() > _FORGET_AFTER:
            container.backoff = _FIRST_BACKOFF
        _settle(container, ended, self._pod["spec"].get("restartPolicy", "Always"))
        _log.info("pod %s/%s: container %s ended with %d %s", *self._key, state.name, ended.exit_code, ended.message)

    def _start_due(self) -> float:
        """Start the containers whose time has come; return the seconds until the next one's."""
        pause = _TICK
        for container in self._containers:
            state = container.state
            if container.starting or state.started is not None or state.ended is not None:
                continue
            left = container.start_at - time.monotonic()
            if left > 0:
                pause = min(pause, left)
            else:
                self._start(container)
        return pause

    def _start(self, container: _Container) -> None:
        assert self._sandbox is not None
        try:
            run = self._container_run(container)
        except MissingError as error:
            container.state.waiting = ("CreateContainerConfigError", str(error))
            container.start_at = time.monotonic() + _RETRY
            return
        container.starting = True
        if container.state.previous is not None:
            container.state.restarts += 1
        self._sandbox.start_container(run, self._node.logs / f"{'_'.join(self._key)}_{container.state.name}.log")

    def _probe(self) -> float:
        """Run the probes that are due; return the seconds until the next one is."""
        pause = _TICK
        for container in self._containers:
            if container.state.started is None:
                continue
            now = time.monotonic()
            startup = container.probes.get("startupProbe")
            if startup is not None and not container.state.startup_passed:
                container.state.startup_passed = startup.run(self.connect, now)
                pause = min(pause, startup.due - now)
                if not container.state.startup_passed:
                    self._kill_if_hopeless(container, startup, now)
                    continue
            readiness = container.probes.get("readinessProbe")
            container.state.ready = readiness is None or readiness.run(self.connect, now)
            liveness = container.probes.get("livenessProbe")
            if liveness is not None and not liveness.run(self.connect, now):
                _log.warning("pod %s/%s: liveness probe of %s failed", *self._key, container.state.name)
                self._signal(container, signal.SIGKILL)
            due = [probe.due for probe in (readiness, liveness) if probe is not None]
            pause = min([pause, *(moment - now for moment in due)])
        return max(pause, 0.05)

    def _kill_if_hopeless(self, container: _Container, startup: Probe, now: float) -> None:
        spec = startup.spec
        patience = (spec.get("failureThreshold") or 3) * (spec.get("periodSeconds") or 10)
        if now > startup.started + spec.get("initialDelaySeconds", 0) + patience:
            _log.warning("pod %s/%s: startup probe of %s failed", *self._key, container.state.name)
            self._signal(container, signal.SIGKILL)

    def _delete(self) -> None:
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds")
        self._end_containers(float(_DEFAULT_GRACE if grace is None else grace))
        self._close()
        now = datetime.now(UTC)
        for container in self._containers:
            if container.state.ended is None:
                container.state.ended = container.state.previous or Termination(0, now, now)
                container.state.started = None
        with contextlib.suppress(ApiError):
            self._report()
        self._node.remove(self._pod)
        self._clean()

    def _end_containers(self, grace: float) -> None:
        """SIGTERM to every container and a wait of at most `grace` seconds; what is left dies with the sandbox."""
        if self._sandbox is None:
            return
        deadline = time.monotonic() + grace
        for container in self._containers:
            self._signal(container, signal.SIGTERM)
        while any(container.state.started is not None or container.starting for container in self._containers):
            left = deadline - time.monotonic()
            if left <= 0 or self._sandbox is None:
                break
            self._wake.wait(min(left, 0.5))
            self._wake.clear()
            self._take_events()

    def _signal(self, container: _Container, number: signal.Signals) -> None:
        if self._sandbox is not None and container.state.started is not None:
            with contextlib.suppress(SandboxError):
                self._sandbox.signal(container.state.name, number)

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def _clean(self) -> None:
        self._close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _report(self) -> None:
        states = [container.state for container in self._containers]
        sandboxed = self._sandbox is not None
        status = self._status.compute(
            self._pod, states, sandboxed=sandboxed, now=datetime.now(UTC), played=self._played
        )
        if status != self._written:
            self._node.write_status(self._pod, status)
            self._written = status

    def _lookup(self, kind: str, name: str) -> Object | None:
        return self._node.lookup(kind, self._key[0], name)

    def _data(self, kind: str, reference: Object) -> dict[str, str] | None:
        """Return what an environment reference names; see `downward.environment`."""
        found = self._lookup(kind, reference["name"])
        values = {} if found is None else volumes.data_of(found)
        wanted = reference.get("key")
        if found is None or (wanted is not None and wanted not in values):
            if reference.get("optional"):
                return None
            missing = f'{kind.lower()} "{reference["name"]}"'
            raise MissingError(f"{missing} not found" if found is None else f"{missing} has no key {wanted}")
        return {key: value.decode(errors="replace") for key, value in values.items()}

    def _environment(self, container: _Container) -> dict[str, str]:
        image = images.resolve(container.spec["image"], self._node.binaries)
        base = {
            "PATH": image.path,
            "HOME": "/root",
            "HOSTNAME": self._key[1],
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(API_PORT),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(API_PORT),
        }
        pod = {**self._pod, "status": {"podIP": self.address, "hostIP": self._node.address}}
        return downward.environment(container.spec, pod, base, self._data)

    def _container_run(self, container: _Container) -> ContainerRun:
        spec = container.spec
        image = images.resolve(spec["image"], self._node.binaries)
        variables = self._environment(container)
        command = spec.get("command") or list(image.entrypoint)
        root = self._folder / "roots" / spec["name"]
        root.mkdir(parents=True, exist_ok=True)
        return ContainerRun(
            name=spec["name"],
            command=[downward.expand(text, variables) for text in (*command, *(spec.get("args") or []))],
            environment=variables,
            cwd=spec.get("workingDir") or "/",
            root=str(root),
            files=image.files,
            links=image.links,
            mounts=[self._mount(mount) for mount in spec.get("volumeMounts") or []],
            etc={
                "hosts": f"127.0.0.1 localhost\n{self.address} {self._key[1]}\n",
                "hostname": f"{self._key[1]}\n",
                "passwd": "root:x:0:0:root:/root:/sbin/nologin\n",
                "group": "root:x:0:\n",
                "resolv.conf": "",
            },
            read_only_root=bool((spec.get("securityContext") or {}).get("readOnlyRootFilesystem")),
        )

    def _mount(self, mount: Object) -> Mount:
        source = self._folder / "volumes" / mount["name"]
        if mount.get("subPath"):
            # Resolved now and bound as a file: later updates of the volume do not reach it, as with a kubelet.
            source = (source / mount["subPath"]).resolve()
            if not source.is_relative_to(self._folder):
                raise MissingError(f"subPath {mount['subPath']} leaves the volume {mount['name']}")
            if not source.exists():
                spec = next(item for item in self._pod["spec"]["volumes"] if item["name"] == mount["name"])
                if "emptyDir" not in spec:
                    raise MissingError(f"volume {mount['name']} has no {mount['subPath']}")
                source.mkdir(parents=True)
        return Mount(str(source), mount["mountPath"], bool(mount.get("readOnly")))

    def _refresh_volumes(self) -> None:
        try:
            self._write_volumes()
        except MissingError as error:
            # What is mounted stays as it was, as with a kubelet.
            _log.info("pod %s/%s: volumes not refreshed: %s", *self._key, error)

    def _write_volumes(self) -> None:
        for volume in self._pod["spec"].get("volumes") or []:
            folder = self._folder / "volumes" / volume["name"]
            files = volumes.content(
                volume,
                {**self._pod, "status": {"podIP": self.address, "hostIP": self._node.address}},
                self._lookup,
                lambda audience, seconds: self._node.token(self._pod, audience, seconds),
            )
            if files is None:
                folder.mkdir(parents=True, exist_ok=True)
            else:
                volumes.write(folder, files)


def _played(pod: Object) -> str:
    """Say why a pod is only played, nothing for one whose every image a program of this machine stands for."""
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    unknown = dict.fromkeys(item["image"] for item in containers if not images.known(item["image"]))
    return f"no program of this machine stands for {', '.join(unknown)}" if unknown else ""


def _adopt(spec: Object, before: Object) -> _Container:
    """Return a container as the pod's status, perhaps written in an earlier life of the kubelet, describes it."""
    state = ContainerState(name=spec["name"], image=spec["image"])
    for found in before.get("containerStatuses") or []:
        if found["name"] != spec["name"]:
            continue
        state.restarts = found.get("restartCount", 0)
        state.previous = _termination((found.get("lastState") or {}).get("terminated"))
        now = found.get("state") or {}
        state.ended = _termination(now.get("terminated"))
        if "running" in now:
            state.started = datetime.fromisoformat(now["running"]["startedAt"])
    return _Container(spec, state)


def _termination(found: Object | None) -> Termination | None:
    if not found:
        return None
    code = -found["signal"] if found.get("signal") else found["exitCode"]
    moments = [
        datetime.fromisoformat(found[name]) if found.get(name) else datetime.fromtimestamp(0, UTC)
        for name in ("startedAt", "finishedAt")
    ]
    return Termination(code, moments[0], moments[1], found.get("reason", ""), found.get("message", ""))


def _settle(container: _Container, ended: Termination, policy: str) -> None:
    """Record an end, and when the container runs again if it does."""
    state = container.state
    state.started, state.ready, state.startup_passed = None, False, False
    if not will_restart(policy, ended.code):
        state.ended = ended
        return
    state.previous = ended
    pause = container.backoff
    container.start_at = time.monotonic() + pause
    container.backoff = min(2 * pause, _LONGEST_BACKOFF)
    state.waiting = ("CrashLoopBackOff", f"back-off {pause:.0f}s restarting failed container {state.name}")


def _refuse_unsupported(pod: Object) -> None:
    """Raise UnsupportedError for what this kubelet would otherwise silently leave out."""
    spec = pod["spec"]
    for key in ("initContainers", "hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            raise UnsupportedError(f"the local kubelet does not support {key}")
    for container in spec["containers"]:
        if container.get("lifecycle"):
            raise UnsupportedError(f"container {container['name']}: the local kubelet runs no lifecycle hooks")
        for kind in _PROBES:
            Probe.of(container, kind, 0.0)
