"""The repair of a node: its states, and what a broken GPU's signals change. Decisions only, no I/O.

    watched      a signal that does not take the node out of service; ends with the signal
    quarantined  tainted; stays so until an administrator returns the node
    reported     quarantined, and an administrator has told the provider
    testing      quarantined, and the health gate runs; a pass or warn returns the node, a fail does not

An annotation of the node has the state as JSON, and a taint keeps jobs away. Without both, the node is in service.

Ships with the repair controller: standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

KEY = "mlbatch/repair"
"""Name of the annotation, and key of the taint."""
STATES = WATCHED, QUARANTINED, REPORTED, TESTING = "watched", "quarantined", "reported", "testing"

EFFECTS = {"watch": None, "cordon": "NoSchedule", "move": "NoExecute"}
"""The actions, mildest first, with the effect of their taint."""
ACTIONS = tuple(EFFECTS)
LONGEST_DETAIL = 500


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A row of signals.yaml.

    reason: the problem in one word, also the taint's value.
    action: one of ACTIONS.
    category: of the problem in a report to the provider.
    alerts: names of alerts with the label `node`.
    conditions: types of node conditions that are True while the problem lasts.
    labels: values that the alert's labels must have, by label. Empty for any.
    """

    reason: str
    action: str
    category: str
    alerts: Sequence[str] = ()
    conditions: Sequence[str] = ()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def detail(self, node: Json, alerts: Iterable[Json]) -> str | None:
        """Return what the signal says about a node. None if it is not raised."""
        name = node["metadata"]["name"]
        for alert in alerts:
            labels = alert["labels"]
            if labels.get("alertname") in self.alerts and labels.get("node") == name and self._has(labels):
                return f"alert {labels['alertname']}: {(alert.get('annotations') or {}).get('summary', '')}"
        for condition in node.get("status", {}).get("conditions") or []:
            if condition["type"] in self.conditions and condition["status"] == "True":
                said = condition.get("message") or condition.get("reason") or ""
                return f"condition {condition['type']}: {said}"
        return None

    def _has(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(label) in values for label, values in self.labels.items())


def repair_of(node: Json) -> Json | None:
    """Return the repair of a node, None if it is in service. An annotation that is not a repair counts as none."""
    try:
        found = json.loads((node["metadata"].get("annotations") or {})[KEY])
        is_one = found["state"] in STATES and found["action"] in EFFECTS and {"reason", "since"} <= found.keys()
        return found if is_one else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def is_out(node: Json) -> bool:
    """Return whether a repair keeps jobs off the node."""
    repair = repair_of(node)
    return repair is not None and repair["action"] != "watch"


def change(node: Json, repair: Json | None) -> Json:
    """Return the merge patch that gives a node a repair and its taint, or takes both away."""
    metadata, before = node["metadata"], node.get("spec", {}).get("taints") or []
    after = [taint for taint in before if taint["key"] != KEY]
    if repair is not None and (effect := EFFECTS[repair["action"]]) is not None:
        after.append({"key": KEY, "value": repair["reason"], "effect": effect})
    text = None if repair is None else json.dumps(repair, sort_keys=True)
    patch: Json = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {KEY: text}}}
    if after != before:
        patch["spec"] = {"taints": after}
    return patch


def begun(signal: Signal, detail: str, now: str, *, has_room: bool = True) -> Json:
    """Return a new repair. has_room: otherwise too many nodes are out of service, and this one is only watched."""
    action = signal.action if has_room else "watch"
    limited = " (too many nodes are in repair)" if action != signal.action else ""
    return {
        "state": WATCHED if action == "watch" else QUARANTINED,
        "action": action,
        "reason": signal.reason,
        "detail": re.sub(r"\s+", " ", detail)[:LONGEST_DETAIL] + limited,
        "category": signal.category,
        "since": now,
    }


def decide(
    node: Json, signals: Sequence[Signal], alerts: Sequence[Json], now: str, *, has_room: bool, gate: str
) -> Json | None:
    """Return the patch for a node, None if the node stays as it is.

    signals: the worst one that is raised counts.
    gate: the annotation with the health gate's report.
    """
    raised = [(signal, detail) for signal in signals if (detail := signal.detail(node, alerts)) is not None]
    worst = max(raised, key=lambda each: ACTIONS.index(each[0].action), default=None)
    repair = repair_of(node)
    if repair is None or repair["state"] == WATCHED:
        if worst is None:
            return None if repair is None else change(node, None)
        new = begun(*worst, now, has_room=has_room)
        same = repair is not None and (repair["reason"], repair["action"]) == (new["reason"], new["action"])
        return None if same else change(node, new)
    if worst is not None and ACTIONS.index(worst[0].action) > ACTIONS.index(repair["action"]):
        return change(node, {**repair, **begun(*worst, now), "state": repair["state"], "since": repair["since"]})
    return _tested(node, repair, gate) if repair["state"] == TESTING else None


def _tested(node: Json, repair: Json, gate: str) -> Json | None:
    """Return the patch after the gate's report, None while there is none of this test."""
    try:
        report = json.loads((node["metadata"].get("annotations") or {})[gate])
        if report["time"] < repair["tested"]:
            return None
        state, why = report["state"], str(report["reason"])
    except (KeyError, ValueError, TypeError):
        return None
    if state in ("pass", "warn"):
        return change(node, None)
    if state == "fail":
        return change(
            node, {**repair, "state": QUARANTINED, "detail": f"the health gate failed: {why}"[:LONGEST_DETAIL]}
        )
    return None
