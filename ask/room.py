"""Compute what fits on nodes when no team runs pods. A pod that does not fit then never fits."""

import contextlib
import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import and_
from typing import Any, Final

from ask.content import NODE
from components import names
from components.kubernetes.quantity import Format, Quantity
from runner.report import TEAM_LABEL, Client, objects

POD: Final = {"pods": Quantity.parse(1).nano}
"""Resources that each pod uses on a node, independent of its requests."""

NO_LABELS: Final = "no node has the labels"
"""Begins the reason for a pod whose labels no node has."""

Amounts = Mapping[str, int]
"""Amounts in billionths of each resource's unit, by resource name."""


@dataclass(frozen=True)
class Room:
    """What a node has for teams."""

    amounts: Amounts
    labels: Mapping[str, str]
    name: str = ""


@dataclass(frozen=True)
class Shortage:
    """Why pods never fit, and the smallest change that helps."""

    resource: str
    reason: str
    change: str


def rooms(client: Client, labels: Sequence[Mapping[str, str]]) -> list[Room]:
    """Return what each node with these labels has after the pods that do not belong to teams.

    labels: node labels of each flavor in the quotas of a job's queue. The replica's own node does not count, because it
        does not belong to the cluster.
    """
    teams = {item["metadata"]["name"] for item in objects(client, "v1", "Namespace", label_selector=TEAM_LABEL)}
    taken: dict[str, Counter[str]] = {}
    for pod in objects(client, "v1", "Pod"):
        if pod["metadata"]["namespace"] not in teams and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            taken.setdefault(pod["spec"].get("nodeName") or "", Counter()).update(asked(pod["spec"]))
    return [
        _room(node, taken.get(node["metadata"]["name"], Counter()))
        for node in objects(client, "v1", "Node")
        if node["metadata"]["name"] != NODE and _has_any(node, labels)
    ]


def _has_any(node: Mapping[str, Any], labels: Sequence[Mapping[str, str]]) -> bool:
    found = node["metadata"].get("labels") or {}
    return any(each.items() <= found.items() for each in labels)


def _room(node: Mapping[str, Any], taken: Counter[str]) -> Room:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    amounts = {name: Quantity.parse(amount).nano - taken[name] for name, amount in allocatable.items()}
    return Room(amounts, node["metadata"].get("labels") or {}, node["metadata"]["name"])


def asked(pod: Mapping[str, Any]) -> Counter[str]:
    """Return what a pod requests: the sum of its containers, or one init container if that requests more.

    An init container that continues to run counts with the containers (kubernetes.io,
    concepts/workloads/pods/sidecar-containers).
    """
    before = pod.get("initContainers") or ()
    beside = [container for container in before if container.get("restartPolicy") == "Always"]
    together: Counter[str] = Counter(POD)
    for container in (*pod["containers"], *beside):
        together.update(_requests(container))
    for container in before:
        for name, nano in _requests(container).items():
            together[name] = max(together[name], nano)
    # Requests of the pod override those of its containers (concepts/workloads/pods/pod-level-resources).
    together.update({name: nano - together[name] for name, nano in _requests(pod).items()})
    return together


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: Quantity.parse(amount).nano for name, amount in amounts.items()}


def short(pods: Sequence[tuple[Mapping[str, Any], int]], nodes: Sequence[Room]) -> Shortage | None:
    """Return why pods never run at once. None if the nodes that they select may hold them.

    pods: those of a job, one entry for each kind of pod, with the number of such pods.
    """
    for pod, _ in pods:
        found = _homeless(pod, nodes)
        if found is not None:
            return found
    for size in range(1, len(pods) + 1):
        for some in combinations(pods, size):
            found = _crowded(some, nodes)
            if found is not None:
                return found
    return None


def _homeless(pod: Mapping[str, Any], nodes: Sequence[Room]) -> Shortage | None:
    """Return why no node has room for a pod, even alone."""
    able = _able(pod, nodes)
    if not able:
        wanted = ", ".join(f"{key}={value}" for key, value in (pod.get("nodeSelector") or {}).items())
        if not nodes:
            return Shortage("nodes", "the cluster has no node for teams", "have nodes added")
        if not wanted or any(_has_labels(pod, node) for node in nodes):
            change = "in nodeAffinity, require what nodes have, or remove it"
            return Shortage("nodes", "no node meets the pod's nodeAffinity", change)
        return Shortage("nodes", f"{NO_LABELS} {wanted}", "in nodeSelector, use labels that nodes have")
    for name, nano in sorted(asked(pod).items()):
        most = max(node.amounts.get(name, 0) for node in able)
        if nano > most > 0:
            return Shortage(
                name,
                f"a pod asks for {text(name, nano)} {name}, and no node has more than {text(name, most)}",
                f"ask for {text(name, most)} {name} a pod, in place of {text(name, nano)}",
            )
        if nano > most:
            return Shortage(name, f"a pod asks for {name}, and no node has it", without(name, able[0].amounts))
    return None


def without(name: str, known: Iterable[str]) -> str:
    """Return the fix for a job that requests an unknown resource. known: the existing resources."""
    meant = difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)
    left_out = f"leave {name} out of the job's requests and limits"
    return f"did you mean {meant[0]}? Else {left_out}" if meant else left_out


def _crowded(pods: Sequence[tuple[Mapping[str, Any], int]], nodes: Sequence[Room]) -> Shortage | None:
    """Return why some of a job's pods do not fit together, even if each requests only what all of them request."""
    able = [node for node in nodes if any(_selects(pod, node) for pod, _ in pods)]
    wants = reduce(and_, (asked(pod) for pod, _ in pods))
    count = sum(count for _, count in pods)
    fit = sum(_fit(wants, node.amounts) for node in able)
    if fit >= count:
        return None
    return Shortage(
        "nodes",
        f"the nodes hold {fit} of its {count} pods at once, also when they are empty",
        f"run {fit} pods, in place of {count}, or ask for less in each",
    )


def _able(pod: Mapping[str, Any], nodes: Sequence[Room]) -> list[Room]:
    return [node for node in nodes if _selects(pod, node)]


def _selects(pod: Mapping[str, Any], node: Room) -> bool:
    return _has_labels(pod, node) and _is_as_required(pod, node)


def _has_labels(pod: Mapping[str, Any], node: Room) -> bool:
    return (pod.get("nodeSelector") or {}).items() <= node.labels.items()


def _is_as_required(pod: Mapping[str, Any], node: Room) -> bool:
    """Return whether a node meets at least one term of the node affinity that a pod requires."""
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_fulfils(term, node) for term in required.get("nodeSelectorTerms") or ())


def _fulfils(term: Mapping[str, Any], node: Room) -> bool:
    """Return whether a node meets all requirements of a term. An empty term matches no node (k8s.io/api, core/v1)."""
    asked_for = [(each, node.labels) for each in term.get("matchExpressions") or ()]
    asked_for += [(each, {"metadata.name": node.name}) for each in term.get("matchFields") or ()]
    return bool(asked_for) and all(_is(each, found) for each, found in asked_for)


def _is(requirement: Mapping[str, Any], found: Mapping[str, str]) -> bool:
    value, values = found.get(requirement["key"]), list(requirement.get("values") or ())
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            with contextlib.suppress(IndexError, ValueError):
                return int(value or "") > int(values[0]) if operator == "Gt" else int(value or "") < int(values[0])
            return False
        case _:
            return True


def _fit(wants: Amounts, amounts: Amounts) -> int:
    """Return how many such pods a node holds at once."""
    return min(max(0, amounts.get(name, 0)) // nano for name, nano in wants.items() if nano)


def text(name: str, nano: int) -> str:
    """Return an amount of a resource as people write it."""
    is_bytes = name in (names.MEMORY, names.DISK)
    return str(Quantity(max(nano, 0), Format.BINARY if is_bytes else Format.DECIMAL))
