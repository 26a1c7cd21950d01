"""Reads the content of the picture from a cluster. Does not change the cluster."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from runner.repairs import Repair, repairs
from runner.report import GPU, SHARED_GPU, Client, objects, pod_gpus, queueing

HEALTH = "autopilot.ibm.com/gpuhealth"
_ENDED = ("Succeeded", "Failed")
_KEEPING_AWAY = ("NoSchedule", "NoExecute")
_GPU_TOLERATIONS = tuple({"key": name, "operator": "Exists"} for name in (GPU, SHARED_GPU))
"""Tolerations of jobs if no flavor sets them: taints with the name of a requested resource."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node. gpus: all, usable: those offered now. held: GPUs of its pods, by namespace. state: one word."""

    name: str
    gpus: int
    usable: int
    state: str
    held: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Queue:
    """GPUs of a ClusterQueue. lendable: None if it lends its whole quota. pending: waiting workloads."""

    name: str
    nominal: int
    used: int
    borrowed: int
    lendable: int | None = None
    pending: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A workload, with the name of its job.

    queued: when it began to wait for its current or last run, None if only an earlier run is recorded. started: when it
    last got quota. ended: when it finished. None if it has not happened.
    """

    namespace: str
    name: str
    gpus: int
    created: datetime
    queued: datetime | None
    started: datetime | None = None
    ended: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Event:
    """A controller's message about an object."""

    time: datetime
    kind: str
    namespace: str
    name: str
    reason: str
    message: str
    is_warning: bool


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A cluster at one time. name: the cluster's name for the reader."""

    name: str
    taken: datetime
    nodes: Sequence[Node] = ()
    repairs: Sequence[Repair] = ()
    queues: Sequence[Queue] = ()
    jobs: Sequence[Job] = ()
    events: Sequence[Event] = ()


def read(client: Client, name: str) -> Snapshot:
    """Return the cluster's current state. Raises the Kubernetes client's exceptions if it does not answer."""
    return snapshot(
        name,
        datetime.now(UTC),
        nodes=objects(client, "v1", "Node"),
        pods=objects(client, "v1", "Pod"),
        queues=queueing(client, "ClusterQueue"),
        flavors=queueing(client, "ResourceFlavor"),
        workloads=queueing(client, "Workload"),
        events=objects(client, "v1", "Event"),
    )


def snapshot(
    name: str,
    taken: datetime,
    *,
    nodes: Sequence[Any] = (),
    pods: Iterable[Any] = (),
    queues: Sequence[Any] = (),
    flavors: Iterable[Any] = (),
    workloads: Iterable[Any] = (),
    events: Iterable[Any] = (),
) -> Snapshot:
    """Return the state from objects that were read before, in the API server's form."""
    counted = _counted(queues)
    tolerations = [*_GPU_TOLERATIONS, *(each for item in flavors for each in item["spec"].get("tolerations") or ())]
    held: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in _ENDED:
            held.setdefault(pod["spec"]["nodeName"], Counter())[pod["metadata"]["namespace"]] += pod_gpus(
                pod["spec"], counted
            )
    found = (_node(item, counted, tolerations, held.get(item["metadata"]["name"], {})) for item in nodes)
    return Snapshot(
        name=name,
        taken=taken,
        nodes=sorted((node for node in found if node.gpus or node.held), key=lambda node: node.name),
        repairs=repairs(nodes),
        queues=sorted((_queue(item, counted) for item in queues), key=lambda queue: queue.name),
        jobs=sorted(
            (_job(item, counted) for item in workloads), key=lambda job: (job.namespace, job.created, job.name)
        ),
        events=sorted(filter(None, map(_event, events)), key=lambda event: event.time, reverse=True),
    )


def _counted(queues: Iterable[Any]) -> str:
    """Return the resource that queues count as GPUs. Nodes with shared GPUs offer shares in addition to GPUs."""
    groups = (group for item in queues for group in item["spec"].get("resourceGroups") or ())
    covered = {entry["name"] for group in groups for flavor in group["flavors"] for entry in flavor["resources"]}
    return SHARED_GPU if SHARED_GPU in covered else GPU


def _node(item: Any, gpu: str, tolerations: Sequence[Any], held: Mapping[str, int]) -> Node:
    status, labels = item.get("status") or {}, item["metadata"].get("labels") or {}
    capacity, offered = (_amount(status.get(part) or {}, gpu) for part in ("capacity", "allocatable"))
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}
    health = labels.get(HEALTH, "PASS")
    state = "ready"
    if conditions.get("Ready") != "True":
        state = "not ready"
    elif item["spec"].get("unschedulable"):
        state = "cordoned"
    elif taint := next(_not_tolerated(item["spec"].get("taints") or (), tolerations), None):
        state = f"taint {taint}"
    elif health != "PASS":
        state = f"marked {health}"
    elif offered < capacity:
        state = f"{capacity - offered} GPUs gone"
    usable = offered if state in ("ready", "marked WARN") or state.endswith("gone") else 0
    return Node(
        name=item["metadata"]["name"],
        gpus=max(capacity, offered),
        usable=usable,
        state=state,
        held={team: number for team, number in sorted(held.items()) if number},
    )


def _not_tolerated(taints: Iterable[Any], tolerations: Sequence[Any]) -> Iterator[str]:
    """Yield the keys of taints that keep jobs away (`ToleratesTaint`, k8s.io/api)."""
    for taint in taints:
        if taint.get("effect") in _KEEPING_AWAY and not any(
            each.get("effect") in (None, "", taint["effect"])
            and each.get("key") in (None, "", taint["key"])
            and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or ""))
            for each in tolerations
        ):
            yield taint["key"]


def _queue(item: Any, gpu: str) -> Queue:
    status = item.get("status") or {}
    flavors = [flavor for group in item["spec"].get("resourceGroups") or () for flavor in group["flavors"]]
    quotas = [entry for flavor in flavors for entry in flavor["resources"] if entry["name"] == gpu]
    used = [
        entry
        for flavor in status.get("flavorsReservation") or ()
        for entry in flavor["resources"]
        if entry["name"] == gpu
    ]
    limits = [_whole(entry.get("lendingLimit", entry["nominalQuota"])) for entry in quotas]
    return Queue(
        name=item["metadata"]["name"],
        nominal=sum(_whole(entry["nominalQuota"]) for entry in quotas),
        used=sum(_whole(entry.get("total", 0)) for entry in used),
        borrowed=sum(_whole(entry.get("borrowed", 0)) for entry in used),
        lendable=sum(limits) if any("lendingLimit" in entry for entry in quotas) else None,
        pending=int(status.get("pendingWorkloads") or 0),
    )


def _job(item: Any, gpu: str) -> Job:
    conditions = {entry["type"]: entry for entry in (item.get("status") or {}).get("conditions") or ()}

    def since(kind: str) -> datetime | None:
        found = conditions.get(kind)
        return _time(found["lastTransitionTime"]) if found is not None and found["status"] == "True" else None

    created, ended, started = _time(item["metadata"]["creationTimestamp"]), since("Finished"), since("QuotaReserved")
    if ended is not None and started is None:
        # Kueue releases the quota when a workload ends, and records its total run time (workload_types.go).
        started = ended - timedelta(seconds=item["status"].get("accumulatedPastExecutionTimeSeconds") or 0)
    sets = item["spec"].get("podSets") or ()
    owner = next(iter(item["metadata"].get("ownerReferences") or ()), item["metadata"])
    return Job(
        namespace=item["metadata"]["namespace"],
        name=owner["name"],
        gpus=sum(pod_gpus(each["template"]["spec"], gpu) * each.get("count", 1) for each in sets),
        created=created,
        queued=since("Evicted") if "Evicted" in conditions else created,
        started=started,
        ended=ended,
    )


def _event(item: Any) -> Event | None:
    when = item.get("lastTimestamp") or item.get("eventTime") or item["metadata"].get("creationTimestamp")
    about = item.get("involvedObject") or {}
    if when is None:
        return None
    return Event(
        time=_time(when),
        kind=about.get("kind") or "",
        namespace=about.get("namespace") or "",
        name=about.get("name") or "",
        reason=item.get("reason") or "",
        message=item.get("message") or "",
        is_warning=item.get("type") == "Warning",
    )


def _amount(resources: Mapping[str, Any], gpu: str) -> int:
    return _whole(resources.get(gpu, 0))


def _whole(quantity: Any) -> int:
    return int(parse_quantity(quantity))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
