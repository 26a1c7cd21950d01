"""What Helm waits for while it waits: Helm itself says no more than that the time is over."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.provider.client import Client
from emulator.provider.objects import Manifest

_PAUSE_SECONDS = 2.0
_RELEASE_ANNOTATION = "meta.helm.sh/release-name"

# Plural of a workload's collection -> where its status counts what is ready, and where what is wanted.
_COUNTS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "deployments": (("status", "availableReplicas"), ("spec", "replicas")),
    "statefulsets": (("status", "readyReplicas"), ("spec", "replicas")),
    "daemonsets": (("status", "numberReady"), ("status", "desiredNumberScheduled")),
}


class Progress:
    """While entered, shows which workloads of a release are not ready; `missing` is what was seen last."""

    def __init__(self, client: Client, namespace: str, release: str, operation: Operation) -> None:
        self._client = client
        self._namespace = namespace
        self._release = release
        self._operation = operation
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"release {release}", daemon=True)
        self.missing: list[str] = []

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()

    def _follow(self) -> None:
        while not self._done.wait(_PAUSE_SECONDS):
            try:
                missing = [*self._workloads(), *unscheduled(self._list("/api/v1", "pods"))]
            except ProviderError:
                continue  # this only adds to what is shown
            # An atomic install takes everything away again before it fails.
            self.missing = missing or self.missing
            if missing and not self._done.is_set():
                self._operation.status(f"waiting: {'; '.join(missing)}")

    def _workloads(self) -> Iterator[str]:
        for plural in _COUNTS:
            for item in self._list("/apis/apps/v1", plural):
                annotations = item["metadata"].get("annotations") or {}
                if annotations.get(_RELEASE_ANNOTATION) == self._release:
                    yield from unready(plural, item)

    def _list(self, version: str, plural: str) -> Iterable[Manifest]:
        path = f"{version}/namespaces/{self._namespace}/{plural}"
        found: Iterable[Manifest] = self._client.request("GET", path, self._operation).get("items") or []
        return found


def unready(plural: str, workload: Manifest) -> Iterator[str]:
    """Say how many pods of a workload are ready, if not all are."""
    ready, wanted = (_count(workload, *place) for place in _COUNTS[plural])
    if ready < wanted:
        yield f"{plural.removesuffix('s')} {workload['metadata']['name']} has {ready} of {wanted} pods ready"


def unscheduled(pods: Iterable[Manifest]) -> Iterator[str]:
    """Say why pods have no node, each reason once."""
    reasons: dict[str, str] = {}
    for pod in pods:
        for condition in (pod.get("status") or {}).get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                reasons.setdefault(str(condition.get("message")), pod["metadata"]["name"])
    for message, name in reasons.items():
        yield f"pod {name} has no node: {message}"


def _count(workload: Manifest, part: str, key: str) -> int:
    found: Any = (workload.get(part) or {}).get(key)
    return int(found) if found is not None else int(part == "spec")
