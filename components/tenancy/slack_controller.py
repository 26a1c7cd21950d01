"""Keeps the slack queue's lendingLimit at what its lost nodes leave of it. Runs in the cluster; standard library only.

For each resource r of the first flavor of the queue's first resource group:

    lost(r)         = sum over GPU nodes n of
                        capacity(n, r)   if n is cordoned, not ready or unreachable, for every r except pods
                        capacity(n, r)   if a label of n equals a configured taint of r (Autopilot's health labels)
    lendingLimit(r) = absent             if nothing is lost
                      max(0, nominalQuota(r) - lost(r))   otherwise

The formula is that of AppWrapper up to 1.0 (`slackcq_monitor.go`, `node_health_monitor.go`) with one difference: only
nodes that carry GPUs, by capacity or by label, count. The quotas are given for those nodes, so cordoning a control
plane node or a node for services leaves them as they are.

Usage: python slack_controller.py SETTINGS, where SETTINGS is a JSON file with `queue`, `apiVersion`, `gpuResource`,
`gpuLabel`, `taints` (by resource, each with key and value) and `port` of the health endpoint.
"""

from __future__ import annotations

import json
import logging
import os
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from http.client import HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

log = logging.getLogger("slack-controller")

Json = dict[str, Any]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10
WATCH_SECONDS = 240
"""The server ends a watch after this long; the client waits for a little longer before it takes the line for dead."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
UNSCHEDULABLE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
DECIMAL_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
BINARY_SUFFIXES = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
SUFFIXES = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(DECIMAL_SUFFIXES, -3)},
    **{suffix: Fraction(1024) ** power for power, suffix in enumerate(BINARY_SUFFIXES, 1)},
}


@dataclass(frozen=True)
class Settings:
    """What the controller works on; see the module's docstring."""

    queue: str
    api_version: str
    gpu_resource: str
    gpu_label: str
    taints: Mapping[str, frozenset[tuple[str, str]]]
    port: int

    @classmethod
    def load(cls, text: str) -> Settings:
        """Read the settings file; raises KeyError or ValueError when it is not one."""
        raw = json.loads(text)
        taints = {
            resource: frozenset((taint["key"], taint["value"]) for taint in taints)
            for resource, taints in raw["taints"].items()
        }
        return cls(
            queue=raw["queue"],
            api_version=raw["apiVersion"],
            gpu_resource=raw["gpuResource"],
            gpu_label=raw["gpuLabel"],
            taints=taints,
            port=raw["port"],
        )


def amount(quantity: str | int) -> Fraction:
    """Return a Kubernetes quantity as an exact number; raises ValueError when it is none."""
    text = str(quantity)
    digits = text.rstrip("numkKMGTPEi")
    if (suffix := text[len(digits) :]) not in SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity")
    return Fraction(digits) * SUFFIXES[suffix]


def quantity(number: Fraction) -> str:
    """Return a number as a quantity, in thousandths where it is not whole."""
    return str(number) if number.denominator == 1 else f"{int(number * 1000)}m"


def lost(nodes: Iterable[Json], settings: Settings) -> dict[str, Fraction]:
    """Return how much of each resource cannot be used now on the GPU nodes; a resource without loss is absent."""
    total: dict[str, Fraction] = {}
    for node in nodes:
        capacity = {name: amount(value) for name, value in node.get("status", {}).get("capacity", {}).items()}
        labels = node["metadata"].get("labels", {})
        if not capacity.get(settings.gpu_resource) and labels.get(settings.gpu_label) != "true":
            continue
        if is_unschedulable(node):
            gone = {name for name in capacity if name != "pods"}
        else:
            gone = {name for name, taints in settings.taints.items() if not taints.isdisjoint(labels.items())}
        for name in gone & capacity.keys():
            total[name] = total.get(name, Fraction(0)) + capacity[name]
    return {name: value for name, value in total.items() if value}


def is_unschedulable(node: Json) -> bool:
    """Whether a node is cordoned, or Kubernetes has found it not ready or unreachable."""
    spec = node.get("spec", {})
    return bool(spec.get("unschedulable")) or any(
        taint["key"] in UNSCHEDULABLE_TAINTS for taint in spec.get("taints", [])
    )


def desired(groups: list[Json], loss: Mapping[str, Fraction]) -> list[Json]:
    """Return the queue's resource groups with the lending limits that a loss leaves; the input stays as it is."""
    if not groups or not groups[0].get("flavors"):
        return groups
    first, *others = groups
    flavor, *flavors = first["flavors"]
    limited = [_limited(entry, loss) for entry in flavor["resources"]]
    return [{**first, "flavors": [{**flavor, "resources": limited}, *flavors]}, *others]


def _limited(entry: Json, loss: Mapping[str, Fraction]) -> Json:
    result = {key: value for key, value in entry.items() if key != "lendingLimit"}
    if gone := loss.get(entry["name"]):
        limit = quantity(max(Fraction(0), amount(entry["nominalQuota"]) - gone))
        kept = entry.get("lendingLimit")
        result["lendingLimit"] = kept if kept is not None and amount(kept) == amount(limit) else limit
    return result


class Cache:
    """The objects of one kind as the cluster has them, and whether they have been read yet."""

    def __init__(self) -> None:
        self._objects: dict[str, Json] = {}
        self._lock = threading.Lock()
        self.synced = threading.Event()

    def replace(self, objects: Iterable[Json]) -> None:
        """Hold these objects and no others."""
        with self._lock:
            self._objects = {item["metadata"]["name"]: item for item in objects}
        self.synced.set()

    def apply(self, kind: str, item: Json) -> None:
        """Take in one event of a watch: ADDED, MODIFIED or DELETED."""
        with self._lock:
            if kind == "DELETED":
                self._objects.pop(item["metadata"]["name"], None)
            else:
                self._objects[item["metadata"]["name"]] = item

    def list(self) -> list[Json]:
        """Return the objects held now."""
        with self._lock:
            return list(self._objects.values())


class Api:
    """The API server, with the pod's own service account."""

    def __init__(self, base: str, account: Path = ACCOUNT) -> None:
        self._base, self._account = base, account
        authority = account / "ca.crt"
        self._tls = ssl.create_default_context(cafile=str(authority)) if base.startswith("https") else None

    @classmethod
    def in_cluster(cls) -> Api:
        """Return the API server of the cluster that this process runs in; raises KeyError outside of one."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}")

    def get(self, path: str, **query: str) -> Json:
        """Return what a path holds."""
        with self._open(path, query, REQUEST_SECONDS) as answer:
            content: Json = json.load(answer)
            return content

    def patch(self, path: str, body: Json) -> None:
        """Merge a body into what a path holds; raises HTTPError with code 409 when it has changed since it was read."""
        with self._open(path, {"fieldManager": "slack-controller"}, REQUEST_SECONDS, body) as answer:
            answer.read()

    def watch(self, path: str, version: str, **query: str) -> Iterator[tuple[str, Json]]:
        """Yield type and object of each event after a version, until the server ends the watch."""
        query = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS)}
        with self._open(path, query, WATCH_SECONDS + REQUEST_SECONDS) as answer:
            for line in answer:
                event = json.loads(line)
                yield event["type"], event["object"]

    def _open(self, path: str, query: Mapping[str, str], seconds: float, body: Json | None = None) -> HTTPResponse:
        token = (self._account / "token").read_text().strip()
        request = Request(f"{self._base}{path}?{urlencode(query)}", headers={"Authorization": f"Bearer {token}"})
        if body is not None:
            request.method, request.data = "PATCH", json.dumps(body).encode()
            request.add_header("Content-Type", "application/merge-patch+json")
        answer: HTTPResponse = urlopen(request, timeout=seconds, context=self._tls)
        return answer


class Controller:
    """Follows nodes and the queue, and writes the queue's limits when they differ from what they should be."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._nodes, self._queues = Cache(), Cache()
        self._changed = threading.Event()
        self._path = f"/apis/{settings.api_version}/clusterqueues"

    @property
    def is_synced(self) -> bool:
        """Whether nodes and queue have been read."""
        return self._nodes.synced.is_set() and self._queues.synced.is_set()

    def run(self) -> None:
        """Work until the process ends."""
        followers: tuple[tuple[Cache, str, dict[str, str]], ...] = (
            (self._nodes, "/api/v1/nodes", {}),
            (self._queues, self._path, {"fieldSelector": f"metadata.name={self._settings.queue}"}),
        )
        for cache, path, query in followers:
            threading.Thread(target=self._follow, args=(cache, path, query), daemon=True).start()
        retried("writing the limits", self._converge)

    def reconcile(self) -> None:
        """Bring the queue's limits to what the nodes leave, if the queue exists and differs."""
        for queue in self._queues.list():
            groups = queue["spec"].get("resourceGroups", [])
            wanted = desired(groups, lost(self._nodes.list(), self._settings))
            if wanted == groups:
                continue
            body = {
                "metadata": {"resourceVersion": queue["metadata"]["resourceVersion"]},
                "spec": {"resourceGroups": wanted},
            }
            try:
                self._api.patch(f"{self._path}/{quote(self._settings.queue)}", body)
            except HTTPError as error:
                if error.code not in (404, 409):
                    raise
                log.info("the queue has changed meanwhile; waiting for its new version")
            else:
                limits = {entry["name"]: entry.get("lendingLimit") for entry in wanted[0]["flavors"][0]["resources"]}
                log.info("lending limits of %s are now %s", self._settings.queue, limits)

    def _converge(self) -> None:
        self._changed.wait()
        self._changed.clear()
        if self.is_synced:
            try:
                self.reconcile()
            except Exception:
                self._changed.set()
                raise

    def _follow(self, cache: Cache, path: str, query: dict[str, str]) -> None:
        def once() -> None:
            content = self._api.get(path, **query)
            cache.replace(content["items"])
            self._changed.set()
            for kind, item in self._api.watch(path, content["metadata"]["resourceVersion"], **query):
                if kind == "ERROR":
                    return
                cache.apply(kind, item)
                self._changed.set()
            time.sleep(FIRST_PAUSE)

        retried(f"following {path}", once)


def retried(what: str, work: Callable[[], None]) -> None:
    """Repeat some work for ever; after a failure of network or server, with a pause that grows to seconds."""
    pause = FIRST_PAUSE
    while True:
        try:
            work()
            pause = FIRST_PAUSE
        except (OSError, URLError, HTTPException, ValueError, KeyError) as error:
            log.warning("%s failed: %s; again in %.1f s", what, error, pause)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def serve_health(controller: Controller, port: int) -> ThreadingHTTPServer:
    """Answer the kubelet's probes: /healthz while the process lives, /readyz once nodes and queue have been read."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_well = self.path == "/healthz" or (self.path == "/readyz" and controller.is_synced)
            self.send_response(200 if is_well else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep probes out of the log."""

    server = ThreadingHTTPServer(("", port), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(path: str) -> None:
    """Run the controller with the settings of a file."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    settings = Settings.load(Path(path).read_text())
    controller = Controller(Api.in_cluster(), settings)
    serve_health(controller, settings.port)
    controller.run()


if __name__ == "__main__":
    main(sys.argv[1])
