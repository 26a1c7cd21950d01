"""A pod's status, computed from the state of its containers like in a kubelet (pkg/kubelet, `getPhase`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from emulator.cluster.api import Object

SIMULATED = "Simulated"
"""Reason in the status of a pod without programs for its images, from `stages.yaml`; kubectl shows it."""

FINISHED = ("Succeeded", "Failed")
"""Final phases of a pod."""

CREATING = ("ContainerCreating", "")
"""Reason and message of a container before its first start."""


def timestamp(moment: datetime) -> str:
    """Return a time as metav1.Time: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Termination:
    """The end of a container's process. A negative code is the number of the signal that ended it."""

    code: int
    started: datetime
    finished: datetime
    reason: str = ""
    message: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code in a shell's notation: 128 + n for signal n."""
        return 128 - self.code if self.code < 0 else self.code

    @classmethod
    def of(cls, found: Object | None) -> Termination | None:
        """Return a ContainerStateTerminated as Termination, None without one."""
        if not found:
            return None
        code = -found["signal"] if found.get("signal") else found["exitCode"]
        begun, finished = (
            datetime.fromisoformat(found[name]) if found.get(name) else datetime.fromtimestamp(0, UTC)
            for name in ("startedAt", "finishedAt")
        )
        return cls(code, begun, finished, found.get("reason", ""), found.get("message", ""))

    def describe(self) -> Object:
        """Return a ContainerStateTerminated."""
        described: Object = {
            "exitCode": self.exit_code,
            "reason": self.reason or ("Error" if self.code else "Completed"),
            "startedAt": timestamp(self.started),
            "finishedAt": timestamp(self.finished),
        }
        if self.code < 0:
            described["signal"] = -self.code
        if self.message:
            described["message"] = self.message
        return described


@dataclass
class ContainerState:
    """The state of one container: running since `started`, else ended finally (`ended`), else waiting.

    previous: the end of the previous run.
    startup_passed: whether its startup probe, if any, has succeeded.
    """

    name: str
    image: str
    waiting: tuple[str, str] = CREATING
    started: datetime | None = None
    ended: Termination | None = None
    previous: Termination | None = None
    restarts: int = 0
    ready: bool = False
    startup_passed: bool = False

    def describe(self) -> Object:
        """Return a ContainerStatus."""
        state: Object
        if self.started is not None:
            state = {"running": {"startedAt": timestamp(self.started)}}
        elif self.ended is not None:
            state = {"terminated": self.ended.describe()}
        else:
            reason, message = self.waiting
            state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        running = self.started is not None
        return {
            "name": self.name,
            "image": self.image,
            "imageID": f"local/{self.image}" if running or self.ended else "",
            "ready": running and self.ready,
            "started": running and self.startup_passed,
            "restartCount": self.restarts,
            "state": state,
            "lastState": {"terminated": self.previous.describe()} if self.previous else {},
        }


def phase(containers: Sequence[ContainerState]) -> str:
    """Return the pod's phase. A container that will run again must be waiting, with `previous` set."""
    if all(container.ended is not None for container in containers):
        failed = any(container.ended.code for container in containers if container.ended)
        return "Failed" if failed else "Succeeded"
    fresh = any(
        container.started is None and container.ended is None and container.previous is None for container in containers
    )
    return "Pending" if fresh else "Running"


def will_restart(policy: str, code: int) -> bool:
    """Tell whether the pod's restart policy restarts a container that ended with `code`."""
    return policy == "Always" or (policy == "OnFailure" and code != 0)


@dataclass
class StatusWriter:
    """Computes the status of one pod and records when each condition last changed."""

    node_ip: str
    pod_ip: str
    start_time: datetime
    _since: dict[str, tuple[str, str]] = field(default_factory=dict)

    def remember(self, conditions: Sequence[Object]) -> None:
        """Keep the transition times of conditions written earlier."""
        for condition in conditions:
            self._since[condition["type"]] = (condition["status"], condition.get("lastTransitionTime") or "")

    def compute(self, pod: Object, containers: Sequence[ContainerState], *, sandboxed: bool, now: datetime) -> Object:
        """Return the PodStatus fields that a kubelet owns.

        sandboxed: whether the pod has a sandbox.
        """
        current = phase(containers)
        done = current in FINISHED
        unready = [container.name for container in containers if not container.describe()["ready"]]
        containers_ready: tuple[bool, str, str] = (not unready, "", "")
        if done:
            containers_ready = (False, "PodCompleted" if current == "Succeeded" else "PodFailed", "")
        elif unready:
            message = f"containers with unready status: [{' '.join(unready)}]"
            containers_ready = (False, "ContainersNotReady", message)
        gates = self._closed_gates(pod)
        ready = containers_ready
        if containers_ready[0] and gates:
            ready = (False, "ReadinessGatesNotReady", f"the conditions {gates} are not True")
        conditions = [
            self._condition("PodReadyToStartContainers", sandboxed and not done, "", "", now),
            self._condition("Initialized", True, "PodCompleted" if current == "Succeeded" else "", "", now),
            self._condition("ContainersReady", *containers_ready, now),
            self._condition("Ready", *ready, now),
        ]
        found: Object = {
            "phase": current,
            "conditions": conditions,
            "containerStatuses": [container.describe() for container in containers],
            "hostIP": self.node_ip,
            "hostIPs": [{"ip": self.node_ip}],
            "startTime": timestamp(self.start_time),
        }
        if sandboxed or done:
            found |= {"podIP": self.pod_ip, "podIPs": [{"ip": self.pod_ip}]}
        return found

    @staticmethod
    def _closed_gates(pod: Object) -> list[str]:
        true = {
            condition["type"]
            for condition in pod.get("status", {}).get("conditions") or []
            if condition["status"] == "True"
        }
        gates = pod["spec"].get("readinessGates") or []
        return [gate["conditionType"] for gate in gates if gate["conditionType"] not in true]

    def _condition(self, kind: str, true: bool, reason: str, message: str, now: datetime) -> dict[str, Any]:
        status = "True" if true else "False"
        before = self._since.get(kind)
        if before is None or before[0] != status:
            self._since[kind] = before = (status, timestamp(now))
        # A strategic merge patch keeps missing fields, so an old reason needs an explicit null.
        return {
            "type": kind,
            "status": status,
            "lastTransitionTime": before[1],
            "reason": reason or None,
            "message": message or None,
        }
