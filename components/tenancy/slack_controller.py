"""Keeps the slack queue's lendingLimit at what its lost nodes leave of it, and takes back what was lent beyond that.

Runs in the cluster; standard library only. For each resource r of the first flavor of the queue's first resource group:

    lost(r)         = sum over GPU nodes n of
                        capacity(n, r)   if n is cordoned, not ready or unreachable, for every r except pods
                        capacity(n, r)   if a label of n equals a configured taint of r (Autopilot's health labels)
    lendingLimit(r) = absent             if nothing is lost
                      max(0, nominalQuota(r) - lost(r))   otherwise

The formula is that of AppWrapper up to 1.0 (`slackcq_monitor.go`, `node_health_monitor.go`) with one difference: only
nodes that carry GPUs, by capacity or by label, count. The quotas are given for those nodes, so cordoning a control
plane node or a node for services leaves them as they are.

A lower limit stops new borrowing, but Kueue leaves alone what it has admitted. A team whose pods lost their node would
find the healthy ones taken by borrowers and, being admitted itself, could not reclaim them. So once a loss has lasted
for some seconds, for each r that it has lowered:

    capacity(r) = sum of nominalQuota(r) of the cohort's other queues + lendingLimit(r) of the slack queue
    usage(r)    = sum over the cohort's workloads that hold quota, without those on their way out

While usage exceeds capacity, workloads of queues that use more than their quota are evicted, in the order in which
Kueue preempts (`pkg/scheduler/preemption/common/ordering.go`): lowest priority first, then latest admission. They are
requeued, not failed: spec.active becomes false, for which Kueue suspends the job and releases its quota, and then true
again, for which Kueue queues the workload with its old creation time (`pkg/controller/core/workload_controller.go`,
`pkg/controller/jobframework/reconciler.go`). An annotation marks the workloads in between, so that a controller that
starts anew finishes what an earlier one began.

It does not look at pods: a borrower may have to go although the pods on a cordoned node run on, and not necessarily the
one whose own node was lost. A loss beyond the slack queue's quota is not shared out among the teams, and cohorts within
cohorts are not added up.

Usage: python -m components.tenancy.slack_controller SETTINGS, where SETTINGS is a JSON file with `queue`, `apiVersion`,
`gpuResource`, `gpuLabel`, `taints` (by resource, each with key and value), `graceSeconds` that a loss has to last
before anything is evicted, and `port` of the health endpoint.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote

from components.kubernetes.in_cluster import Api, Json

log = logging.getLogger("slack-controller")

Item = tuple[str, str]
"""What a quota is given for: name of the flavor, name of the resource."""
Amounts = Mapping[Item, Fraction]
T = TypeVar("T")

REQUEUED = "mlbatch/requeued-for"
"""The annotation of a workload that is inactive only until Kueue has released its quota."""
REASON = "lost-capacity"
FIELD_MANAGER = "slack-controller"

PAGE = 500
"""Objects in one answer to a list, so that the memory limit holds however many workloads there are."""
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
    grace_seconds: float
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
            grace_seconds=raw["graceSeconds"],
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


class Debounce:
    """What has been lost without a break for some seconds; before the first look, nothing was."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._history: list[tuple[float, Mapping[str, Fraction]]] = [(float("-inf"), {})]

    def look(self, now: float, loss: Mapping[str, Fraction]) -> tuple[dict[str, Fraction], float | None]:
        """Take in the loss at a time, in seconds; return the part that has lasted, and in how long to look again.

        The latter is None where the answer stays the same until the loss changes.
        """
        if loss != self._history[-1][1]:
            self._history.append((now, loss))
        while len(self._history) > 1 and self._history[1][0] + self._seconds <= now:
            del self._history[0]
        least = {name: min(past.get(name, Fraction(0)) for _, past in self._history) for name in loss}
        wait = self._history[1][0] + self._seconds - now if len(self._history) > 1 else None
        return {name: value for name, value in least.items() if value}, wait


@dataclass(frozen=True)
class Workload:
    """What counts of one Workload.

    version: its resourceVersion. queue, usage: the ClusterQueue that it holds quota in and how much; empty without a
    reservation and when it is finished. reserved_at: since when, RFC 3339. is_leaving: its quota is about to be
    released. is_active, is_requeued: its spec.active, and whether it carries this controller's annotation.
    """

    namespace: str
    name: str
    uid: str
    version: str
    queue: str
    usage: Amounts
    priority: int
    reserved_at: str
    is_leaving: bool
    is_active: bool
    is_requeued: bool

    @classmethod
    def read(cls, item: Json) -> Workload:
        """Return what counts of a Workload as the API server has it."""
        metadata, spec, status = item["metadata"], item["spec"], item.get("status", {})
        conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
        true = {name for name, condition in conditions.items() if condition["status"] == "True"}
        holds_quota = "QuotaReserved" in true and "Finished" not in true
        is_active = spec.get("active", True)
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
            queue=status["admission"]["clusterQueue"] if holds_quota else "",
            usage=_usage(status) if holds_quota else {},
            priority=spec.get("priority") or 0,
            reserved_at=conditions["QuotaReserved"]["lastTransitionTime"] if holds_quota else "",
            is_leaving=not is_active or "Evicted" in true or "deletionTimestamp" in metadata,
            is_active=is_active,
            is_requeued=REQUEUED in metadata.get("annotations", {}),
        )

    @property
    def is_to_return(self) -> bool:
        """Whether this controller made it inactive and that has served its purpose."""
        return self.is_requeued and (self.is_active or not self.queue)


def _usage(status: Json) -> Amounts:
    """Return the quota a Workload holds; pods that have ended and are reclaimable hold none."""
    ended = {pods["name"]: pods["count"] for pods in status.get("reclaimablePods", [])}
    total: dict[Item, Fraction] = {}
    for pods in status["admission"].get("podSetAssignments", []):
        count = pods.get("count") or 1
        part = Fraction(max(0, count - ended.get(pods["name"], 0)), count)
        usage = pods.get("resourceUsage", {})
        for resource, flavor in pods.get("flavors", {}).items():
            item = (flavor, resource)
            total[item] = total.get(item, Fraction(0)) + part * amount(usage.get(resource, 0))
    return total


def quotas(queues: Iterable[Json], slack: Json, loss: Mapping[str, Fraction]) -> dict[str, Amounts]:
    """Return what each queue of the slack queue's cohort counts on: its nominal quota, or what a loss leaves of it."""
    cohort = slack["spec"].get("cohortName")
    result: dict[str, Amounts] = {}
    for queue in queues:
        if cohort and queue["spec"].get("cohortName") == cohort:
            groups = queue["spec"].get("resourceGroups", [])
            is_slack = queue["metadata"]["name"] == slack["metadata"]["name"]
            result[queue["metadata"]["name"]] = {
                (flavor["name"], entry["name"]): amount(
                    entry.get("lendingLimit", entry["nominalQuota"]) if is_slack else entry["nominalQuota"]
                )
                for group in (desired(groups, loss) if is_slack else groups)
                for flavor in group.get("flavors", [])
                for entry in flavor["resources"]
            }
    return result


def lowered(slack: Json, loss: Mapping[str, Fraction]) -> set[Item]:
    """Return what a loss makes the slack queue lend less of."""
    groups = slack["spec"].get("resourceGroups", [])
    flavors = groups[0].get("flavors", []) if groups else []
    return {
        (flavor["name"], entry["name"])
        for flavor in flavors[:1]
        for entry in flavor["resources"]
        if loss.get(entry["name"]) and amount(entry["nominalQuota"])
    }


def excess(workloads: Iterable[Workload], quota: Mapping[str, Amounts], items: Iterable[Item]) -> dict[Item, Fraction]:
    """Return by how much the staying workloads of a cohort use more of these items than its queues may count on."""
    over = {item: -sum((amounts.get(item, Fraction(0)) for amounts in quota.values()), Fraction(0)) for item in items}
    for workload in workloads:
        if workload.queue in quota and not workload.is_leaving:
            for item in over:
                over[item] += workload.usage.get(item, Fraction(0))
    return {item: value for item, value in over.items() if value > 0}


def victims(workloads: Iterable[Workload], quota: Mapping[str, Amounts], over: Amounts) -> list[Workload]:
    """Return whom to evict so that nothing is in use beyond the quota, or as little as can be.

    A queue is taken from while it uses more than its own quota of something that is short. The last one taken from it
    may leave it with less, for workloads cannot be divided. Who turns out not to be needed stays, as in Kueue.
    """
    staying = [workload for workload in workloads if workload.queue in quota and not workload.is_leaving]
    staying.sort(key=lambda workload: (workload.reserved_at, workload.uid), reverse=True)
    staying.sort(key=lambda workload: workload.priority)
    short = dict(over)
    borrowed = {(name, item): -amounts.get(item, Fraction(0)) for name, amounts in quota.items() for item in short}
    for workload in staying:
        for item in short:
            borrowed[workload.queue, item] += workload.usage.get(item, Fraction(0))
    chosen = []
    for workload in staying:
        used = {item: workload.usage[item] for item in short if workload.usage.get(item)}
        if any(short[item] > 0 and borrowed[workload.queue, item] > 0 for item in used):
            chosen.append(workload)
            for item, value in used.items():
                short[item] -= value
                borrowed[workload.queue, item] -= value
    for workload in reversed(chosen.copy()):
        used = {item: workload.usage[item] for item in short if workload.usage.get(item)}
        if all(short[item] + value <= 0 for item, value in used.items()):
            chosen.remove(workload)
            for item, value in used.items():
                short[item] += value
    return chosen


def formatted(amounts: Amounts) -> str:
    """Return amounts for a reader: `8 nvidia.com/gpu`."""
    return ", ".join(f"{quantity(value)} {resource}" for (_, resource), value in sorted(amounts.items()))


class Cache(Generic[T]):
    """What counts of the objects of one kind as the cluster has them, and whether they have been read yet."""

    def __init__(self, read: Callable[[Json], T]) -> None:
        self.read = read
        self._objects: dict[tuple[str, str], T] = {}
        self._lock = threading.Lock()
        self.synced = threading.Event()

    def replace(self, objects: Mapping[tuple[str, str], T]) -> None:
        """Hold these objects and no others."""
        with self._lock:
            self._objects = dict(objects)
        self.synced.set()

    def apply(self, kind: str, item: Json) -> None:
        """Take in one event of a watch: ADDED, MODIFIED or DELETED."""
        with self._lock:
            if kind == "DELETED":
                self._objects.pop(key(item), None)
            else:
                self._objects[key(item)] = self.read(item)

    def list(self) -> list[T]:
        """Return the objects held now."""
        with self._lock:
            return list(self._objects.values())


def key(item: Json) -> tuple[str, str]:
    """Return an object's namespace, empty where it is in none, and name."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


class Controller:
    """Follows nodes, queues and workloads; writes the slack queue's limits, and requeues borrowers after a loss."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._nodes: Cache[Json] = Cache(dict)
        self._queues: Cache[Json] = Cache(dict)
        self._workloads = Cache(Workload.read)
        self._changed = threading.Event()
        self._debounce = Debounce(settings.grace_seconds)
        self._wait: float | None = None
        self._patched: dict[str, str] = {}
        """By uid, the version of a workload that a patch has replaced and that may still be the one in the cache."""
        self._group = f"/apis/{settings.api_version}"

    @property
    def is_synced(self) -> bool:
        """Whether nodes, queues and workloads have been read."""
        return all(cache.synced.is_set() for cache in (self._nodes, self._queues, self._workloads))

    def run(self) -> None:
        """Work until the process ends."""
        followers: tuple[tuple[Cache[Any], str], ...] = (
            (self._nodes, "/api/v1/nodes"),
            (self._queues, f"{self._group}/clusterqueues"),
            (self._workloads, f"{self._group}/workloads"),
        )
        for cache, path in followers:
            threading.Thread(target=self._follow, args=(cache, path), daemon=True).start()
        retried("writing limits and evicting", self._converge)

    def reconcile(self) -> float | None:
        """Bring limits and workloads to what the nodes leave; return in how many seconds to look again, if at all."""
        loss = lost(self._nodes.list(), self._settings)
        lasting, wait = self._debounce.look(time.monotonic(), loss)
        slack = next((q for q in self._queues.list() if q["metadata"]["name"] == self._settings.queue), None)
        # Kueue has to know the limit first, or it could admit again what was evicted for it.
        is_limited = slack is not None and self._limit(slack, loss)
        workloads = self._known_workloads()
        for workload in workloads:
            if workload.is_to_return and workload.uid not in self._patched:
                self._return(workload)
        if slack is not None and is_limited:
            quota = quotas(self._queues.list(), slack, lasting)
            over = excess(workloads, quota, lowered(slack, lasting))
            for workload in victims(workloads, quota, over):
                self._evict(workload, over)
        return wait

    def _limit(self, slack: Json, loss: Mapping[str, Fraction]) -> bool:
        """Write the slack queue's limits if they differ; return whether they were as they should be."""
        groups = slack["spec"].get("resourceGroups", [])
        wanted = desired(groups, loss)
        if wanted == groups:
            return True
        body = {
            "metadata": {"resourceVersion": slack["metadata"]["resourceVersion"]},
            "spec": {"resourceGroups": wanted},
        }
        if self._patch(f"{self._group}/clusterqueues/{quote(self._settings.queue)}", body):
            limits = {entry["name"]: entry.get("lendingLimit") for entry in wanted[0]["flavors"][0]["resources"]}
            log.info("lending limits of %s are now %s", self._settings.queue, limits)
        return False

    def _known_workloads(self) -> list[Workload]:
        """Return the workloads; one whose new version is still to come counts as on its way out."""
        cached = self._workloads.list()
        self._patched = {w.uid: w.version for w in cached if self._patched.get(w.uid) == w.version}
        return [replace(w, is_leaving=True) if w.uid in self._patched else w for w in cached]

    def _evict(self, workload: Workload, over: Amounts) -> None:
        if not self._activate(workload, False, REASON):
            return
        freed = formatted({item: value for item, value in workload.usage.items() if item in over})
        why = (
            f"requeued to free {freed}: {workload.queue} borrows, and after the loss of nodes"
            f" {formatted(over)} more is in use than the cohort's quotas cover"
        )
        log.info("workload %s/%s %s", workload.namespace, workload.name, why)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{workload.name[:50]}.", "namespace": workload.namespace},
            "involvedObject": {
                "apiVersion": self._settings.api_version,
                "kind": "Workload",
                "namespace": workload.namespace,
                "name": workload.name,
                "uid": workload.uid,
            },
            "reason": "LostCapacity",
            "message": why,
            "type": "Normal",
            "source": {"component": "slack-controller"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._api.create(f"/api/v1/namespaces/{quote(workload.namespace)}/events", event)
        except (OSError, HTTPException) as error:
            log.warning("no event for workload %s/%s: %s", workload.namespace, workload.name, error)

    def _return(self, workload: Workload) -> None:
        if self._activate(workload, True, None):
            log.info("workload %s/%s is queued again", workload.namespace, workload.name)

    def _activate(self, workload: Workload, is_active: bool, reason: str | None) -> bool:
        body = {
            "metadata": {"resourceVersion": workload.version, "annotations": {REQUEUED: reason}},
            "spec": {"active": is_active},
        }
        namespace, name = quote(workload.namespace), quote(workload.name)
        if is_patched := self._patch(f"{self._group}/namespaces/{namespace}/workloads/{name}", body):
            self._patched[workload.uid] = workload.version
        return is_patched

    def _patch(self, path: str, body: Json) -> bool:
        """Patch an object; return False when it is gone or has changed, of which its watch will tell."""
        try:
            self._api.patch(path, body, fieldManager=FIELD_MANAGER)
        except HTTPError as error:
            if error.code not in (404, 409):
                raise
            log.info("%s has changed meanwhile; waiting for its new version", path)
            return False
        return True

    def _converge(self) -> None:
        self._changed.wait(self._wait)
        self._changed.clear()
        if self.is_synced:
            try:
                self._wait = self.reconcile()
            except Exception:
                self._changed.set()
                raise

    def _follow(self, cache: Cache[Any], path: str) -> None:
        def once() -> None:
            version = self._read(cache, path)
            self._changed.set()
            for kind, item in self._api.watch(path, version):
                if kind == "ERROR":
                    return
                cache.apply(kind, item)
                self._changed.set()
            time.sleep(FIRST_PAUSE)

        retried(f"following {path}", once)

    def _read(self, cache: Cache[Any], path: str) -> str:
        """Fill a cache page by page; return the version to watch from."""
        objects = {}
        query = {"limit": str(PAGE)}
        while True:
            page = self._api.get(path, **query)
            objects.update({key(item): cache.read(item) for item in page["items"]})
            if not (rest := page["metadata"].get("continue")):
                cache.replace(objects)
                version: str = page["metadata"]["resourceVersion"]
                return version
            query["continue"] = rest


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
    """Answer the kubelet's probes: /healthz while the process lives, /readyz once all has been read."""

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
