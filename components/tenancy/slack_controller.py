"""Keeps the lending limits of the cohort's queues at what the usable GPU nodes leave of them. Kueue does the rest.

Runs in the cluster; standard library only. What the limits are is decided in `lending`. The process also frees the
quota of jobs that have no pods and cannot end (`ending_jobs`).

A lower limit evicts nobody by itself. A job whose pods do not come up again is evicted and requeued by Kueue
(`waitForPodsReady`), and takes back from borrowers what it needs when it is admitted anew. So nobody is evicted unless
somebody starves, and Kueue chooses whom.

Of nodes and queues only what counts is kept. A worker that keeps failing ends the process, and /healthz tells whether
each has come round lately. A controller that starts takes the nodes as they are.

Usage: python -m components.tenancy.slack_controller SETTINGS, where SETTINGS is a JSON file with the `queue`, its
`apiVersion`, `healthSeconds` after which a node that was unusable counts again, the `port` of health and metrics, and
`pools`: which nodes are those of each flavor (`lending.NodeRules`).
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from urllib.error import HTTPError
from urllib.parse import quote

from components.kubernetes.followed import Followed
from components.kubernetes.in_cluster import Api, Json
from components.tenancy.ending_jobs import EndingJobs
from components.tenancy.lending import Amounts, Node, NodeRules, Queue, limits, quantity, usable

NAME = "slack-controller"
"""Of its log, and of what it writes."""
log = logging.getLogger(NAME)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
PATIENCE = 120.0
"""Seconds for which a worker may keep failing, or not come round, before the process is given up."""
BEAT, SETTLE = 20.0, 0.2
"""Seconds after which limits are looked at without an event, and in which events that come together are awaited."""
METRICS = {
    "slack_last_reconcile_timestamp_seconds": "When all limits were last as they should be, in Unix time.",
    "usable": "What can be counted on of a resource.",
    "quota": "The nominal quota of a queue.",
    "lending_limit": "How much a queue lends at most.",
    "node_unusable": "A node of which less is counted on than it has.",
    "node_lost": "How many GPUs of a node are not counted on.",
}
"""What each metric says, by its name after `mlbatch_`."""


@dataclass(frozen=True)
class Settings:
    """What the controller works on; see the module's docstring."""

    queue: str
    api_version: str
    health_seconds: float
    port: int
    pools: tuple[NodeRules, ...]

    @classmethod
    def load(cls, text: str) -> Settings:
        """Read the settings file; raises KeyError or ValueError when it is not one."""
        raw = json.loads(text)
        pools = tuple(map(NodeRules.read, raw["pools"]))
        return cls(raw["queue"], raw["apiVersion"], raw["healthSeconds"], raw["port"], pools)


class Controller:
    """Follows nodes and queues, and writes the queues' limits."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._path = f"/apis/{settings.api_version}/clusterqueues"
        self._changed = threading.Event()
        self._due: dict[str, float] = {}
        self._nodes = Followed(api, "/api/v1/nodes", self._node, partial(self.expect, "nodes"), self._changed)
        self._queues = Followed(api, self._path, self._queue, partial(self.expect, "queues"), self._changed)
        self._limits: list[Mapping[str, Amounts]] = []
        self._wait, self._last = BEAT, 0.0

    @property
    def is_synced(self) -> bool:
        """Whether nodes and queues have been read."""
        return self._nodes.is_complete and self._queues.is_complete

    def late(self) -> list[str]:
        """Return the workers that should have come round by now."""
        return sorted(worker for worker, due in self._due.items() if due < time.monotonic())

    def run(self, others: Mapping[str, Callable[[], None]] = MappingProxyType({})) -> None:
        """Work until a worker is given up; returns then, for the process to end. others: further workers by name."""
        over = threading.Event()
        workers = {"nodes": self._nodes.follow, "queues": self._queues.follow, "limits": self._converge, **others}
        for worker, work in workers.items():
            self.expect(worker, BEAT)
            threading.Thread(target=kept_up, args=(worker, work, over), daemon=True).start()
        over.wait()

    def reconcile(self) -> float:
        """Bring the limits to what the nodes leave; return in how many seconds to look again at the latest.

        Raises the last failure after all queues have been tried.
        """
        waits, there = self._settle(), self._usable()
        with self._queues.lock:
            queues = dict(self._queues.objects)
        failures: list[OSError] = []
        if (slack := queues.get(self._settings.queue)) is not None:
            self._limits = [
                limits([each[flavor] for each in queues.values()], slack[flavor], room)
                for flavor, room in enumerate(there)
            ]
            for name in self._limits[0]:
                try:
                    self._write(queues[name], [limit[name] for limit in self._limits])
                except OSError as error:
                    failures.append(error)
        if failures:
            raise failures[-1]
        self._last = time.time()
        return min([BEAT, *waits])

    def metrics(self) -> str:
        """Return what is known in Prometheus' text format."""
        with self._nodes.lock:
            nodes = sorted(self._nodes.objects.items())
        with self._queues.lock:
            queues = sorted(self._queues.objects.items())
        pools = self._settings.pools
        gpu = pools[0].resources[0]
        samples: dict[str, list[tuple[dict[str, str], float]]] = {
            "slack_last_reconcile_timestamp_seconds": [({}, self._last)],
            "usable": [
                ({"flavor": pool.name, "resource": name}, value / 1000)
                for pool, there in zip(pools, self._usable(), strict=True)
                for name, value in there.items()
            ],
            "quota": [
                ({"queue": queue, "flavor": pool.name, "resource": name}, value / 1000)
                for queue, flavors in queues
                for pool, limit, each in zip(pools, self._limits, flavors, strict=False)
                if queue in limit
                for name, value in each.nominal.items()
            ],
            "lending_limit": [
                ({"queue": queue, "flavor": pool.name, "resource": name}, value / 1000)
                for pool, limit in zip(pools, self._limits, strict=False)
                for queue, wanted in sorted(limit.items())
                for name, value in wanted.items()
            ],
            "node_unusable": [({"node": name, "reason": why}, 1) for name, node in nodes if (why := node.why)],
            "node_lost": [
                ({"node": name, "reason": why, "resource": gpu}, node.lost(gpu) / 1000)
                for name, node in nodes
                if (why := node.why)
            ],
        }
        return "".join(_exposed(name, found) for name, found in samples.items())

    def expect(self, worker: str, seconds: float) -> None:
        """Expect the worker again within these seconds, and PATIENCE."""
        self._due[worker] = time.monotonic() + seconds + PATIENCE

    def _node(self, item: Json, before: Node | None) -> Node | None:
        read = (Node.read(item, pool) for pool in self._settings.pools)
        node = next((node for node in read if node is not None), None)
        return node.after(before, time.monotonic()) if node is not None else None

    def _usable(self) -> list[Amounts]:
        """Return what can be counted on of each pool."""
        with self._nodes.lock:
            return [usable(self._nodes.objects.values(), pool) for pool in self._settings.pools]

    def _queue(self, item: Json, before: tuple[Queue, ...] | None) -> tuple[Queue, ...]:
        """Return what counts of a queue for each flavor."""
        return tuple(Queue.read(item, pool.name) for pool in self._settings.pools)

    def _settle(self) -> list[float]:
        """Count on nodes that have been well for long enough; return in how many seconds others will have been."""
        now, seconds = time.monotonic(), self._settings.health_seconds
        with self._nodes.lock:
            return [wait for node in self._nodes.objects.values() if (wait := node.settle(now, seconds))]

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
        self.expect("limits", BEAT)

    def _write(self, flavors: Sequence[Queue], wanted: Sequence[Amounts]) -> None:
        queue = flavors[0]
        groups = queue.groups
        for each, limit in zip(flavors, wanted, strict=True):
            groups = each.with_limits(groups, limit)
        if groups == queue.groups:
            return
        body = {"metadata": {"resourceVersion": queue.version}, "spec": {"resourceGroups": groups}}
        try:
            self._api.patch(f"{self._path}/{quote(queue.name)}", body, fieldManager=NAME)
        except HTTPError as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise
            log.info("%s has changed meanwhile; waiting for its new version", queue.name)
        else:
            lowered = {
                f"{pool.name}/{name}": quantity(value)
                for pool, each, limit in zip(self._settings.pools, flavors, wanted, strict=True)
                for name, value in limit.items()
                if value < each.nominal[name]
            }
            log.info("%s now lends at most %s", queue.name, lowered or "its whole quota")


def _exposed(name: str, samples: list[tuple[dict[str, str], float]]) -> str:
    """Return a metric with its samples in Prometheus' text format (prometheus/docs, exposition_formats)."""
    lines = [f"# HELP mlbatch_{name} {METRICS[name]}", f"# TYPE mlbatch_{name} gauge"]
    for labels, value in samples:
        # Values of labels are escaped as texts of JSON are: backslash, quote, end of line.
        shown = ",".join(f"{label}={json.dumps(text, ensure_ascii=False)}" for label, text in labels.items())
        lines.append(f"mlbatch_{name}{{{shown}}} {value:.15g}" if shown else f"mlbatch_{name} {value:.3f}")
    return "\n".join([*lines, ""])


def kept_up(worker: str, work: Callable[[], None], over: threading.Event) -> None:
    """Repeat some work, with a pause that grows to seconds after failures; end all once it has failed for long."""
    pause, failing_since = FIRST_PAUSE, math.inf
    while not over.is_set():
        started = time.monotonic()
        try:
            work()
            failing_since = math.inf
        except Exception as error:  # whatever it is, the thread must not end and leave the process behind
            now = time.monotonic()
            if failing_since == math.inf or now - started > PATIENCE:  # a watch that stood for so long did work
                pause, failing_since = FIRST_PAUSE, now
            if now - failing_since > PATIENCE:
                log.critical("%s has failed for %.0f s: %r; giving up", worker, now - failing_since, error)
                over.set()
                return
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
    api = Api.in_cluster()
    controller = Controller(api, settings)
    jobs = EndingJobs(api, controller.expect)
    serve(controller, settings.port)
    controller.run({"ending jobs": jobs.follow, "quota": jobs.free})
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
