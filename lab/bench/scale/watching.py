"""Observes the jobs: time of each admission, and GPUs in use."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from components import names
from lab.pods import OVER, held
from runner.report import Client, is_true

WORKLOADS: Final = f"/apis/{names.KUEUE_API}/workloads"
PODS: Final = "/api/v1/pods"
_SECONDS: Final = 600
"""Seconds of one watch request."""
_GROUP_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")

Document = Mapping[str, Any]


class Jobs:
    """The jobs' history. Times are seconds of time.monotonic(). Jobs are named by namespace and name.

    admitted, started: first admission by Kueue, and binding of the last bound pod.
    curve: GPUs in use, at each change.
    """

    def __init__(self, namespaces: frozenset[str]) -> None:
        self._namespaces = namespaces
        self._lock = threading.Lock()
        self.admitted: dict[tuple[str, str], float] = {}
        self.started: dict[tuple[str, str], float] = {}
        self.curve: list[tuple[float, int]] = []
        self.changed = time.monotonic()
        self._workloads: set[str] = set()
        self._pods: set[str] = set()
        self._bound: dict[str, tuple[tuple[str, str], int]] = {}

    @property
    def left(self) -> int:
        """Number of existing workloads and pods."""
        return len(self._workloads) + len(self._pods)

    @property
    def made(self) -> int:
        return len(self._pods)

    @property
    def gpus(self) -> int:
        """GPUs of pods that are bound to a node and not finished."""
        with self._lock:
            return sum(gpus for _, gpus in self._bound.values())

    @property
    def pods(self) -> Counter[tuple[str, str]]:
        """Number of bound pods of each job."""
        with self._lock:
            return Counter(job for job, _ in self._bound.values())

    def workload(self, kind: str, item: Document) -> None:
        metadata = item["metadata"]
        owners = metadata.get("ownerReferences") or ()
        if metadata["namespace"] not in self._namespaces or not owners:
            return
        with self._lock:
            (self._workloads.discard if kind == "DELETED" else self._workloads.add)(metadata["uid"])
            job = (metadata["namespace"], owners[0]["name"])
            if job not in self.admitted and is_true(item, "Admitted"):
                self.admitted[job] = self.changed = time.monotonic()

    def pod(self, kind: str, item: Document) -> None:
        metadata = item["metadata"]
        if metadata["namespace"] not in self._namespaces:
            return
        labels = metadata.get("labels") or {}
        job = (metadata["namespace"], next((labels[key] for key in _GROUP_LABELS if key in labels), metadata["name"]))
        is_over = kind == "DELETED" or item["status"].get("phase") in OVER
        uid, now = metadata["uid"], time.monotonic()
        with self._lock:
            (self._pods.discard if kind == "DELETED" else self._pods.add)(uid)
            if item["spec"].get("nodeName") and not is_over:
                if uid in self._bound:
                    return
                self._bound[uid] = (job, held(item))
                self.started[job] = now
            elif self._bound.pop(uid, None) is None:
                return
            self.changed = now
            self.curve.append((now, sum(gpus for _, gpus in self._bound.values())))


class Watch:
    """Calls a function for all objects of a kind and for their changes, during a context."""

    def __init__(self, client: Client, path: str, take: Callable[[str, Document], None]) -> None:
        self._client, self._path, self._take = client, path, take
        self._over = threading.Event()
        self._known: dict[str, Document] = {}
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)
        self._response: Any = None

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._response is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):  # it has ended already
                self._response.shutdown()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._follow(self._all())
            except (ApiException, HTTPError, OSError, ValueError):
                self._over.wait(1)

    def _all(self) -> str:
        """Process the existing objects; return the version to watch from."""
        found = json.loads(self._get().data)
        items = {item["metadata"]["uid"]: item for item in found.get("items") or ()}
        for uid in [uid for uid in self._known if uid not in items]:
            self._take("DELETED", self._known.pop(uid))
        for item in items.values():
            self._tell("ADDED", item)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        self._response = self._get(watch=True, resource_version=version, timeout_seconds=_SECONDS)
        for line in _lines(self._response):
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            self._tell(event["type"], event["object"])

    def _tell(self, kind: str, item: Document) -> None:
        kept = {key: item[key] for key in ("metadata", "spec", "status") if key in item}
        if kind == "DELETED":
            self._known.pop(item["metadata"]["uid"], None)
        else:
            self._known[item["metadata"]["uid"]] = kept
        self._take(kind, item)

    def _get(self, **query: Any) -> Any:
        """Return the API server's response as a stream."""
        return self._client.request("get", self._path, serialize=False, **query)


def _lines(response: Any) -> Iterator[bytes]:
    """Yield the lines of an endless response as they arrive."""
    rest = b""
    while chunk := response.read1(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
