"""Keeps the lending limits of the cohort's queues at what the usable GPU nodes leave of them. Kueue does the rest.

Runs in the cluster; standard library only. What the limits are is decided in `lending`.

A lower limit evicts nobody by itself. A job whose pods do not come up again is evicted and requeued by Kueue
(`waitForPodsReady`), and takes back from borrowers what it needs when it is admitted anew. So nobody is evicted unless
somebody starves, and Kueue chooses whom.

Of nodes and queues only what counts is kept. A worker that keeps failing ends the process, and /healthz tells whether
each has come round lately. A controller that starts takes the nodes as they are.

Usage: python -m components.tenancy.slack_controller SETTINGS, where SETTINGS is a JSON file with the `queue`, its
`apiVersion`, `healthSeconds` after which a node that was unusable counts again, the `port` of health and metrics, and
`nodes` (`lending.NodeRules`).
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

from components.kubernetes.in_cluster import Api, Json
from components.tenancy.lending import Amounts, Node, NodeRules, Queue, limits, quantity, usable

log = logging.getLogger("slack-controller")

FIELD_MANAGER = "slack-controller"
PAGE = 50
"""Objects in one answer to a list: a node with its images takes kilobytes, and only what is read of it is kept."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
PATIENCE = 120.0
"""Seconds for which a worker may keep failing, or not come round, before the process is given up."""
BEAT, SETTLE = 20.0, 0.2
"""Seconds after which limits are looked at without an event, and in which events that come together are awaited."""
WATCH_LIMIT = 300.0
"""Seconds without an answer after which a watch is taken for lost; the server ends each before (in_cluster.py)."""


@dataclass(frozen=True)
class Settings:
    """What the controller works on; see the module's docstring."""

    queue: str
    api_version: str
    health_seconds: float
    port: int
    nodes: NodeRules

    @classmethod
    def load(cls, text: str) -> Settings:
        """Read the settings file; raises KeyError or ValueError when it is not one."""
        raw = json.loads(text)
        return cls(raw["queue"], raw["apiVersion"], raw["healthSeconds"], raw["port"], NodeRules.read(raw["nodes"]))


class Controller:
    """Follows nodes and queues, and writes the queues' limits."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._nodes: dict[str, Node] = {}
        self._queues: dict[str, Queue] = {}
        self._read: set[str] = set()
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._versions: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._wait, self._last = BEAT, 0.0
        self._limits: dict[str, dict[str, int]] = {}
        self._paths = {"nodes": "/api/v1/nodes", "queues": f"/apis/{settings.api_version}/clusterqueues"}

    @property
    def is_synced(self) -> bool:
        """Whether nodes and queues have been read."""
        return len(self._read) == len(self._paths)

    def late(self) -> list[str]:
        """Return the workers that should have come round by now."""
        return sorted(worker for worker, due in self._due.items() if due < time.monotonic())

    def _beat(self, worker: str, seconds: float) -> None:
        """Expect the worker again within these seconds, and PATIENCE."""
        self._due[worker] = time.monotonic() + seconds + PATIENCE

    def run(self) -> None:
        """Work until a worker is given up; returns then, for the process to end."""
        over = threading.Event()
        rounds: dict[str, Callable[[], None]] = {kind: partial(self._follow, kind) for kind in self._paths}
        for worker, work in {**rounds, "limits": self._converge}.items():
            self._beat(worker, BEAT)
            threading.Thread(target=kept_up, args=(worker, work, over), daemon=True).start()
        over.wait()

    def reconcile(self) -> float:
        """Bring the limits to what the nodes leave; return in how many seconds to look again at the latest.

        Raises the last failure after all queues have been tried.
        """
        with self._lock:
            now = time.monotonic()
            waits = [wait for node in self._nodes.values() if (wait := node.settle(now, self._settings.health_seconds))]
            there, queues = usable(self._nodes.values(), self._settings.nodes), dict(self._queues)
        failure: OSError | None = None
        if (slack := queues.get(self._settings.queue)) is not None:
            self._limits = limits(queues.values(), slack, there)
            for name, wanted in self._limits.items():
                try:
                    self._write(queues[name], wanted)
                except OSError as error:
                    failure = error
        if failure is not None:
            raise failure
        self._last = time.time()
        return min([BEAT, *waits])

    def _write(self, queue: Queue, wanted: Amounts) -> None:
        if not queue.nominal or (groups := queue.with_limits(wanted)) == queue.groups:
            return
        body = {"metadata": {"resourceVersion": queue.version}, "spec": {"resourceGroups": groups}}
        try:
            self._api.patch(f"{self._paths['queues']}/{quote(queue.name)}", body, fieldManager=FIELD_MANAGER)
        except HTTPError as error:
            if error.code not in (404, 409):
                raise
            log.info("%s has changed meanwhile; waiting for its new version", queue.name)
        else:
            lowered = {name: quantity(value) for name, value in wanted.items() if value < queue.nominal[name]}
            log.info("%s now lends at most %s", queue.name, lowered or "its whole quota")

    def _converge(self) -> None:
        self._changed.wait(self._wait)
        self._changed.clear()
        time.sleep(SETTLE)
        if self.is_synced:
            try:
                self._wait = self.reconcile()
            except Exception:
                self._changed.set()
                raise
        self._beat("limits", BEAT)

    def _follow(self, kind: str) -> None:
        version = self._versions.pop(kind, "") or self._list(kind)
        self._beat(kind, WATCH_LIMIT)
        try:
            version = self._take(kind, version)
        except HTTPError as error:
            if error.code != 410:
                raise
            version = ""
        self._versions[kind] = version

    def _take(self, kind: str, version: str) -> str:
        """Follow the events after a version; return the one to go on from, empty where all has to be read anew."""
        for event, item in self._api.watch(self._paths[kind], version, allowWatchBookmarks="true"):
            if event == "ERROR":
                return ""
            version = item["metadata"]["resourceVersion"]
            self._beat(kind, WATCH_LIMIT)
            if event != "BOOKMARK":
                with self._lock:
                    self._apply(kind, item, is_gone=event == "DELETED")
                self._changed.set()
        return version

    def _list(self, kind: str) -> str:
        """Read all objects of a kind page by page; return the version to watch from."""
        query, found = {"limit": str(PAGE)}, set()
        while True:
            page = self._api.get(self._paths[kind], **query)
            with self._lock:
                for item in page["items"]:
                    found.add(item["metadata"]["name"])
                    self._apply(kind, item, is_gone=False)
            if not (rest := page["metadata"].get("continue")):
                break
            query["continue"] = rest
        with self._lock:
            held: dict[str, Any] = self._nodes if kind == "nodes" else self._queues
            for name in held.keys() - found:
                del held[name]
        self._read.add(kind)
        self._changed.set()
        version: str = page["metadata"]["resourceVersion"]
        return version

    def _apply(self, kind: str, item: Json, *, is_gone: bool) -> None:
        name = item["metadata"]["name"]
        if kind == "queues":
            self._queues.pop(name, None)
            if not is_gone:
                self._queues[name] = Queue.read(item)
            return
        before, now = self._nodes.pop(name, None), time.monotonic()
        if not is_gone and (node := Node.read(item, self._settings.nodes)) is not None:
            self._nodes[name] = node.after(before, now)

    def metrics(self) -> str:
        """Return what is known in Prometheus' text format."""
        with self._lock:
            there, nodes = usable(self._nodes.values(), self._settings.nodes), dict(self._nodes)
        lines = [f"mlbatch_slack_last_reconcile_timestamp_seconds {self._last:.3f}"]
        lines += [f'mlbatch_usable{{resource="{name}"}} {value / 1000:g}' for name, value in there.items()]
        lines += [
            f'mlbatch_lending_limit{{queue="{queue}",resource="{name}"}} {value / 1000:g}'
            for queue, wanted in sorted(self._limits.items())
            for name, value in wanted.items()
        ]
        lines += [
            f'mlbatch_node_unusable{{node="{name}",reason="{node.reason or "healthy again, not for long"}"}} 1'
            for name, node in sorted(nodes.items())
            if node.reason or node.counted != node.usable
        ]
        return "\n".join([*lines, ""])


def kept_up(worker: str, work: Callable[[], None], over: threading.Event) -> None:
    """Repeat some work, with a pause that grows to seconds after a failure; end all once it has failed for long."""
    pause, failing_since = FIRST_PAUSE, math.inf
    while not over.is_set():
        started = time.monotonic()
        try:
            work()
            pause, failing_since = FIRST_PAUSE, math.inf
        except Exception as error:  # whatever it is, the thread must not end and leave the process behind
            now = time.monotonic()
            if now - started > PATIENCE:  # a watch that stood for so long did work
                pause, failing_since = FIRST_PAUSE, math.inf
            failing_since = min(failing_since, now)
            if now - failing_since > PATIENCE:
                log.critical("%s has failed for %.0f s: %r; giving up", worker, now - failing_since, error)
                over.set()
            else:
                log.warning("%s failed: %r; again in %.1f s", worker, error, pause)
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)


def serve(controller: Controller, port: int) -> ThreadingHTTPServer:
    """Answer probes and Prometheus: /healthz while all workers come round, /readyz once all is read, /metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            late = controller.late()
            answers = {
                "/healthz": (503 if late else 200, f"late: {', '.join(late)}\n" if late else "ok\n"),
                "/readyz": (200 if controller.is_synced else 503, ""),
                "/metrics": (200, controller.metrics()),
            }
            status, text = answers.get(self.path, (404, ""))
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep probes out of the log."""

    server = ThreadingHTTPServer(("", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(path: str) -> None:
    """Run the controller with the settings of a file, until it is given up."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    settings = Settings.load(Path(path).read_text())
    controller = Controller(Api.in_cluster(), settings)
    serve(controller, settings.port)
    controller.run()
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
