"""What nodes have room for when no team runs anything: who does not fit then never fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.kubernetes.quantity import Quantity
from runner.report import TEAM_LABEL, Client, objects

Amounts = Mapping[str, int]
"""Billionths of each resource's unit, by its name."""


@dataclass(frozen=True)
class Room:
    """What a node has for teams. taints: the keys of those that keep pods off which do not tolerate them."""

    amounts: Amounts
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Shortage:
    """Why pods never fit, and the least that helps."""

    resource: str
    reason: str
    change: str


def rooms(client: Client) -> list[Room]:
    """Return what each node has beside what others than teams run there."""
    teams = {item["metadata"]["name"] for item in objects(client, "v1", "Namespace", label_selector=TEAM_LABEL)}
    taken: dict[str, Counter[str]] = {}
    for pod in objects(client, "v1", "Pod"):
        if pod["metadata"]["namespace"] not in teams and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            taken.setdefault(pod["spec"].get("nodeName") or "", Counter()).update(asked(pod["spec"]))
    return [_room(node, taken.get(node["metadata"]["name"], Counter())) for node in objects(client, "v1", "Node")]


def _room(node: Mapping[str, Any], taken: Counter[str]) -> Room:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    amounts = {name: Quantity.parse(amount).nano - taken[name] for name, amount in allocatable.items()}
    return Room(amounts, node["metadata"].get("labels") or {})


def asked(pod: Mapping[str, Any]) -> Counter[str]:
    """Return what a pod asks for: what its containers do together, or one that runs before them."""
    together: Counter[str] = Counter()
    for container in pod["containers"]:
        together.update(_requests(container))
    for container in pod.get("initContainers") or ():
        for name, nano in _requests(container).items():
            together[name] = max(together[name], nano)
    return together


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: Quantity.parse(amount).nano for name, amount in amounts.items()}


def short(pod: Mapping[str, Any], count: int, nodes: Sequence[Room]) -> Shortage | None:
    """Return why so many pods never run at once, None where the nodes that the pod selects hold them."""
    selected = pod.get("nodeSelector") or {}
    able = [node for node in nodes if selected.items() <= node.labels.items()]
    if not able:
        wanted = ", ".join(f"{key}={value}" for key, value in selected.items())
        return Shortage("nodes", f"no node has the labels {wanted}", "name labels in nodeSelector that nodes have")
    wants = asked(pod)
    for name, nano in sorted(wants.items()):
        most = max(node.amounts.get(name, 0) for node in able)
        if nano > most:
            return Shortage(
                name,
                f"a pod asks for {_text(nano)} {name}, and no node has more than {_text(most)}",
                f"ask for {_text(most)} {name} a pod, in place of {_text(nano)}",
            )
    fit = sum(_fit(wants, node.amounts) for node in able)
    if fit >= count:
        return None
    return Shortage(
        "nodes",
        f"the nodes hold {fit} of its {count} pods at once, also when they are empty",
        f"run {fit} pods, in place of {count}, or ask for less in each",
    )


def _fit(wants: Amounts, amounts: Amounts) -> int:
    """Return how many such pods a node holds at once."""
    return min((amounts.get(name, 0) // nano for name, nano in wants.items() if nano), default=len(amounts))


def _text(nano: int) -> str:
    return str(Quantity(max(nano, 0)))
