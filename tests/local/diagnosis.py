"""The state of a cluster when a test fails, for the log of a machine that no longer exists."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubernetes.dynamic.exceptions import ForbiddenError

from tests.local.environment import Cluster
from tests.local.jobs import APPWRAPPER, KUEUE

EVENTS = 40


def diagnosis(cluster: Cluster) -> str:
    """Return the jobs, the queues' messages about them, their pods, the nodes, and the last events, a line each.

    A member of a team may not see all of it. The first forbidden part is reported as such.
    """
    lines = ["what the cluster holds:"]
    try:
        for part in (_jobs, _pods, _nodes, _events):
            lines.extend(part(cluster))
    except ForbiddenError as refusal:
        lines.append(f"  {refusal.summary()}")
    return "\n".join(lines)


def _jobs(cluster: Cluster) -> Iterator[str]:
    for kind, api_version in (("AppWrapper", APPWRAPPER), ("Workload", KUEUE)):
        for item in cluster.list(api_version, kind):
            status = item.get("status") or {}
            numbers = {name: value for name, value in status.items() if isinstance(value, int | str)}
            yield f"  {kind} {_name(item)} {numbers}"
            yield from _conditions(status.get("conditions") or ())


def _pods(cluster: Cluster) -> Iterator[str]:
    for item in cluster.list("v1", "Pod"):
        ends = item["metadata"].get("deletionTimestamp")
        yield f"  Pod {_name(item)} {item['status']['phase']} on {item['spec'].get('nodeName')}" + (
            f", told to end by {ends}" if ends else ""
        )
        for container in item["status"].get("containerStatuses") or ():
            if container.get("restartCount") or not container.get("ready"):
                state = {name: container.get(name) for name in ("restartCount", "ready", "state", "lastState")}
                yield f"    container {container['name']} {state}"


def _nodes(cluster: Cluster) -> Iterator[str]:
    for item in cluster.list("v1", "Node"):
        taints = [taint["key"] for taint in item["spec"].get("taints") or ()]
        yield f"  Node {item['metadata']['name']} {item['metadata'].get('labels')} taints {taints}"


def _events(cluster: Cluster) -> Iterator[str]:
    found = [(_when(item), item) for item in cluster.list("v1", "Event")]
    for when, item in sorted(found, key=lambda pair: pair[0])[-EVENTS:]:
        about = item["involvedObject"]
        yield f"  {when} {about.get('kind')} {about.get('name')}: {item.get('reason')}: {item.get('message')}"


def _when(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime"))


def _conditions(conditions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for item in conditions:
        stated = f"{item['type']}={item['status']} {item.get('reason')}: {item.get('message')}"
        yield f"    {item.get('lastTransitionTime')} {stated}"


def _name(item: Mapping[str, Any]) -> str:
    return f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"
