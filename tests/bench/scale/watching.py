"""What becomes of the jobs, as it happens: when each was admitted, and how many GPUs are in use."""

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
from kubernetes.dynamic.exceptions import DynamicApiError
from urllib3.exceptions import HTTPError

from components import names
from runner.report import Client

WORKLOADS: Final = f"/apis/{names.KUEUE_API}/workloads"
PODS: Final = "/api/v1/pods"
_SECONDS: Final = 600
"""After which the API server is asked anew."""
_GROUP_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")

Document = Mapping[str, Any]


class Jobs:
    """The jobs' lives. Times are seconds of time.monotonic(), jobs are named by namespace and name.

    admitted, started: when Kueue first admitted a job, and when the last of its pods that are bound was. curve: GPUs in
    use, at each moment at which that changed.
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
        """How many workloads and pods there still are."""
        return len(self._workloads) + len(self._pods)

    @property
    def made(self) -> int:
        """How many pods there are."""
        return len(self._pods)

    @property
    def gpus(self) -> int:
        """GPUs in use: of pods that are bound to a node and not over."""
        with self._lock:
            return sum(gpus for _, gpus in self._bound.values())

    @property
    def pods(self) -> Counter[tuple[str, str]]:
        """How many pods of each job are bound."""
        with self._lock:
            return Counter(job for job, _ in self._bound.values())

    def workload(self, kind: str, item: Document) -> None:
        """Take in an event about a workload."""
        metadata = item["metadata"]
        owners = metadata.get("ownerReferences") or ()
        if metadata["namespace"] not in self._namespaces or not owners:
            return
        with self._lock:
            (self._workloads.discard if kind == "DELETED" else self._workloads.add)(metadata["uid"])
            job = (metadata["namespace"], owners[0]["name"])
            conditions = (item.get("status") or {}).get("conditions") or ()
            if job not in self.admitted and ("Admitted", "True") in [(c["type"], c["status"]) for c in conditions]:
                self.admitted[job] = self.changed = time.monotonic()

    def pod(self, kind: str, item: Document) -> None:
        """Take in an event about a pod."""
        metadata, spec = item["metadata"], item["spec"]
        if metadata["namespace"] not in self._namespaces:
            return
        labels = metadata.get("labels") or {}
        job = (metadata["namespace"], next((labels[key] for key in _GROUP_LABELS if key in labels), metadata["name"]))
        is_over = kind == "DELETED" or item["status"].get("phase") in ("Succeeded", "Failed")
        uid, now = metadata["uid"], time.monotonic()
        with self._lock:
            (self._pods.discard if kind == "DELETED" else self._pods.add)(uid)
            if spec.get("nodeName") and not is_over:
                if uid in self._bound:
                    return
                limits = [(each.get("resources") or {}).get("limits") or {} for each in spec["containers"]]
                self._bound[uid] = (job, sum(int(each.get(names.GPU, 0)) for each in limits))
                self.started[job] = now
            elif self._bound.pop(uid, None) is None:
                return
            self.changed = now
            self.curve.append((now, sum(gpus for _, gpus in self._bound.values())))


class Watch:
    """Tells a function of all objects of a kind, and of what happens to them, for the length of a context."""

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
            with contextlib.suppress(OSError, RuntimeError, ValueError):  # it is over already
                self._response.shutdown()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._follow(self._all())
            except (ApiException, DynamicApiError, HTTPError, OSError, ValueError):
                self._over.wait(1)

    def _all(self) -> str:
        """Take in what there is; return the version from which on to watch."""
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
        """Return the API server's answer as it comes in."""
        return self._client.request("get", self._path, serialize=False, **query)


def _lines(response: Any) -> Iterator[bytes]:
    """Yield the lines of an answer that goes on and on, as soon as each is there."""
    rest = b""
    while chunk := response.read1(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
