"""Pods that no program stands for are played: ready at once, complete when their restart policy lets them end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from emulator.cluster import pod as pods
from emulator.cluster.pod import PodWorker
from emulator.cluster.pod_sandbox import SandboxError


class FakeNode:
    """Keeps one pod and the statuses written to it."""

    isolation: tuple[str, ...] = ()
    api_address = ("127.0.0.1", 1)
    address = "127.0.0.1"

    def __init__(self, folder: Path, pod: dict[str, Any]) -> None:
        self.binaries = self.pods_folder = self.logs = folder
        self.current: dict[str, Any] | None = pod
        self.statuses: list[dict[str, Any]] = []
        self.written = threading.Event()

    def pod(self, key: tuple[str, str]) -> dict[str, Any] | None:
        return self.current

    def lookup(self, kind: str, namespace: str, name: str) -> None:
        raise AssertionError("nobody looks at what a played pod refers to")

    def token(self, pod: dict[str, Any], audience: str, seconds: int) -> str:
        raise AssertionError("a played pod needs no token")

    def write_status(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        self.statuses.append(status)
        self.written.set()

    def remove(self, pod: dict[str, Any]) -> None:
        self.current = None


def manifest(image: str = "ghcr.io/x/operator:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
        "spec": {"containers": [container], "hostNetwork": True, **spec},
    }


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    workers: list[PodWorker] = []

    def start(pod: dict[str, Any]) -> tuple[FakeNode, PodWorker]:
        node = FakeNode(tmp_path, pod)
        worker = PodWorker(node, pod, "10.244.0.9")
        workers.append(worker)
        return node, worker

    yield start
    for worker in workers:
        worker.stop()


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {item["type"]: item["status"] for item in status["conditions"]}


def test_a_pod_of_an_unknown_image_is_ready_and_says_that_it_is_played(started: Any) -> None:
    node, worker = started(manifest())
    worker._step()
    status = node.statuses[-1]
    assert (status["phase"], status["reason"], status["podIP"]) == ("Running", "Played", "10.244.0.9")
    assert status["message"] == "no program of this machine stands for ghcr.io/x/operator:1"
    assert conditions(status)["Ready"] == "True"
    with pytest.raises(SandboxError, match="pod ns/p is only played"):
        worker.connect(80)


def test_one_unknown_image_is_enough_also_of_an_init_container(started: Any) -> None:
    init = {"name": "i", "image": "busybox"}
    node, worker = started(manifest("registry.k8s.io/kueue/kueue:v1", initContainers=[init]))
    worker._step()
    assert node.statuses[-1]["message"] == "no program of this machine stands for busybox"


@pytest.mark.parametrize(
    ("policy", "phase"), [("Never", "Succeeded"), ("OnFailure", "Succeeded"), ("Always", "Running")]
)
def test_a_jobs_pod_completes_after_a_moment(
    started: Any, monkeypatch: pytest.MonkeyPatch, policy: str, phase: str
) -> None:
    node, worker = started(manifest(restartPolicy=policy))
    worker._step()
    assert node.statuses[-1]["phase"] == "Running"
    monkeypatch.setattr(pods, "_PLAYED_JOB", timedelta(0))
    worker._step()
    assert node.statuses[-1]["phase"] == phase
    assert node.statuses[-1]["reason"] == "Played"


def test_a_played_pod_is_ready_again_in_the_next_life_of_the_kubelet(started: Any) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    running = {"name": "c", "state": {"running": {"startedAt": began}}}
    before = {"phase": "Running", "podIP": "10.244.0.9", "containerStatuses": [running]}
    node, worker = started({**manifest(), "status": before})
    worker._step()
    container = node.statuses[-1]["containerStatuses"][0]
    assert (container["ready"], container["restartCount"]) == (True, 0)
    assert container["state"]["running"]["startedAt"] == "2026-01-01T00:00:00Z"


def test_a_deleted_played_pod_goes_at_once(started: Any) -> None:
    node, worker = started(manifest())
    worker._step()
    assert node.current is not None
    node.current = {**node.current, "metadata": {**node.current["metadata"], "deletionTimestamp": "now"}}
    worker._step()
    assert node.current is None
