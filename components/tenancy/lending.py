"""How much the queues of a cohort lend to each other, after what its GPU nodes have. Decisions alone, no I/O.

For each flavor of the queues' first resource group apart, and for each resource r, `pods` excepted, whose quotas stand
for no part of a node:

    promised(r) = sum of nominalQuota(r) over the cohort's queues, the slack queue among them
    usable(r)   = sum over nodes n of the pool, which the flavor names by their labels, of
                    0                 if n is cordoned, not Ready, or has a taint that teams' pods do not tolerate
                    0                 if a label of n equals a configured taint of r (Autopilot's health labels)
                    allocatable(n, r) otherwise
                  + what the nodes have that an autoscaler may still add
    loss(r)     = max(0, promised(r) - usable(r))

So lower allocatable, a lost device plugin and a deleted node count like a cordon. The slack queue bears the loss first,
its lendingLimit is max(0, nominalQuota - loss). What is left of the loss is taken from what the teams lend:

    own(t, r)          = nominalQuota, where jobs of the team wait; else min(nominalQuota, what its jobs hold)
    idle(t, r)         = min(nominalQuota - own, the declared lendingLimit)
    lendingLimit(t, r) = what is declared, where the team's jobs hold its quota, so that none of it is idle
                         idle * min(1, max(0, usable - sum of own) / sum of idle) otherwise

So only what is idle is lent then, and no more of it than the nodes have: what Kueue admits from then on fits them,
unless teams want more of their own quotas than there is. Without such a loss a team lends what its settings declare.
Something of each resource is always lent, if only one piece: where a cohort lends nothing at all, Kueue takes every
queue's share for zero and reclaims nothing (0.15, `calculateLendable` in pkg/cache/scheduler/fair_sharing.go).

A limit goes down at once. A node that had become unusable counts again only after it has been as it is for a while;
one that joins counts as soon as it can be used.

Ships with the slack controller: standard library only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
Amounts = Mapping[str, int]
"""By resource, in thousandths, which are the finest that quotas have."""

PIECE = 1000
"""The smallest piece that is lent: a GPU, a core, a byte."""

DECLARED = "mlbatch/lending-limits"
"""The annotation of a ClusterQueue with the lending limits that its settings declare: JSON, by resource, and a list of
these where there are several flavors."""

DECIMAL_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
BINARY_SUFFIXES = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
SUFFIXES = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(DECIMAL_SUFFIXES, -3)},
    **{suffix: Fraction(1024) ** power for power, suffix in enumerate(BINARY_SUFFIXES, 1)},
}


@dataclass(frozen=True)
class NodeRules:
    """Which nodes count for a flavor, and when.

    name: of the flavor. resources: those that are counted, the GPU first.
    labels: of the nodes, as the flavor names them; where it names none, nodes with GPUs count.
    tolerations: of teams' pods. taints: by resource, labels that take it away.
    most, least, shape: how many nodes an autoscaler may have and keeps at least, and what one has; most is 0 without
    one.
    """

    name: str
    resources: tuple[str, ...]
    labels: Mapping[str, str]
    tolerations: tuple[Json, ...]
    taints: Mapping[str, frozenset[tuple[str, str]]]
    most: int
    least: int
    shape: Amounts

    @classmethod
    def read(cls, raw: Json) -> NodeRules:
        """Return the rules of a settings file; raises KeyError or ValueError when they are none."""
        return cls(
            name=raw["name"],
            resources=tuple(raw["resources"]),
            labels=raw["labels"],
            tolerations=tuple(raw["tolerations"]),
            taints={name: frozenset((t["key"], t["value"]) for t in taints) for name, taints in raw["taints"].items()},
            most=raw["most"],
            least=raw["least"],
            shape={name: amount(value) for name, value in raw["shape"].items()},
        )


def amount(quantity: str | int) -> int:
    """Return a Kubernetes quantity in whole thousandths, rounded down; raises ValueError when it is none."""
    text = str(quantity)
    digits = text.rstrip("numkKMGTPEi")
    if (suffix := text[len(digits) :]) not in SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity")
    return math.floor(Fraction(digits) * SUFFIXES[suffix] * 1000)


def quantity(thousandths: int) -> str:
    """Return an amount as a quantity."""
    whole, part = divmod(thousandths, 1000)
    return f"{thousandths}m" if part else str(whole)


def tolerates(tolerations: Iterable[Json], taint: Json) -> bool:
    """Whether a pod with these tolerations may be put on a node with this taint (`ToleratesTaint`, k8s.io/api)."""
    return any(
        (not toleration.get("effect") or toleration["effect"] == taint.get("effect"))
        and (not toleration.get("key") or toleration["key"] == taint["key"])
        and (toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or ""))
        for toleration in tolerations
    )


@dataclass
class Node:
    """What counts of a node: what teams' pods can have of it now, and why that may be less than it should be.

    pool: the name of its pool. whole: what it has at best: its capacity or what was ever seen of it, whichever is more.
    counted: what is counted on, which stays at less for a while after it was less. changed: since when it is as it is.
    has_dropped: what was once usable has not been since; only then is what comes back waited for.
    """

    usable: Amounts
    reason: str
    pool: str = ""
    whole: Amounts = field(default_factory=dict)
    changed: float = 0.0
    counted: Amounts = field(default_factory=dict)
    has_dropped: bool = False

    @classmethod
    def read(cls, item: Json, rules: NodeRules) -> Node | None:
        """Return what counts of a node as the API server has it, None for one that jobs in queues never run on."""
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        labels, capacity = metadata.get("labels") or {}, status.get("capacity") or {}
        gpu, allocatable = rules.resources[0], status.get("allocatable") or {}
        has_gpus = any(amount(source.get(gpu, 0)) for source in (capacity, allocatable))
        if not (rules.labels.items() <= labels.items() if rules.labels else has_gpus):
            return None
        whole = {name: max(amount(part.get(name, 0)) for part in (capacity, allocatable)) for name in rules.resources}
        if why := _unusable(spec, status, rules):
            return cls(usable=dict.fromkeys(rules.resources, 0), reason=why, pool=rules.name, whole=whole)
        sick = [name for name, taints in rules.taints.items() if not taints.isdisjoint(labels.items())]
        usable = {name: 0 if name in sick else amount(allocatable.get(name, 0)) for name in rules.resources}
        is_less = usable[gpu] < amount(capacity.get(gpu, 0)) or not usable[gpu]
        reason = "health label" if sick else "fewer GPUs" if is_less else ""
        return cls(usable=usable, reason=reason, pool=rules.name, whole=whole)

    def after(self, before: Node | None, now: float) -> Node:
        """Return this state as the one that follows another."""
        if before is None or before.pool != self.pool:
            return replace(self, changed=now, counted=self.usable)
        whole = {name: max(value, before.whole[name]) for name, value in self.whole.items()}
        least = {name: min(value, before.counted[name]) for name, value in self.usable.items()}
        has_dropped = before.has_dropped or least != before.counted
        return replace(
            self,
            whole=whole,
            changed=before.changed if self.usable == before.usable else now,
            counted=least if has_dropped else self.usable,
            has_dropped=has_dropped,
        )

    def settle(self, now: float, seconds: float) -> float | None:
        """Count on all that is usable once it has been for these seconds; return how many of them are left, if any."""
        if self.counted != self.usable and (left := self.changed + seconds - now) > 0:
            return left
        self.counted = self.usable
        return None

    @property
    def why(self) -> str:
        """Why less is counted on than it has; empty where all is."""
        return self.reason or ("healthy again, not for long" if self.counted != self.usable else "")

    def lost(self, name: str) -> int:
        """Return how much of a resource it has and is not counted on."""
        return max(0, self.whole[name] - self.counted[name])


def _unusable(spec: Json, status: Json, rules: NodeRules) -> str:
    """Return why no pod of a team can be put on a node, empty where it can."""
    if spec.get("unschedulable"):
        return "cordoned"
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or []}
    if conditions.get("Ready") != "True":
        return "not ready"
    for taint in spec.get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not tolerates(rules.tolerations, taint):
            return f"taint {taint['key']}"
    return ""


@dataclass(frozen=True)
class Queue:
    """What counts of a ClusterQueue for one of its flavors.

    flavor: its position, behind all of them where the queue has no quota of it.
    groups: the queue's resource groups as they are.
    nominal, declared: by resource, the quota and the most that is ever lent of it; spelled: the latter as the settings
    have it. held: what its jobs hold, borrowed quota included. waits: whether jobs of it wait.
    """

    name: str
    version: str
    cohort: str
    groups: list[Json]
    flavor: int
    nominal: Amounts
    declared: Amounts
    spelled: Mapping[str, str]
    held: Amounts
    waits: bool

    @classmethod
    def read(cls, item: Json, name: str) -> Queue:
        """Return what counts of a ClusterQueue as the API server has it. name: of the flavor."""
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        groups = spec.get("resourceGroups") or []
        flavors = (groups[0].get("flavors") or []) if groups else []
        position = next((index for index, each in enumerate(flavors) if each["name"] == name), len(flavors))
        flavor = flavors[position] if position < len(flavors) else {}
        nominal = {entry["name"]: amount(entry["nominalQuota"]) for entry in flavor.get("resources") or []}
        noted = json.loads((metadata.get("annotations") or {}).get(DECLARED) or "{}")
        spelled = dict(enumerate(noted if isinstance(noted, list) else [noted])).get(position, {})
        return cls(
            name=metadata["name"],
            version=metadata["resourceVersion"],
            cohort=spec.get("cohortName") or spec.get("cohort") or "",
            groups=groups,
            flavor=position,
            nominal=nominal,
            declared={name: min(value, amount(spelled.get(name, quantity(value)))) for name, value in nominal.items()},
            spelled=spelled,
            held={
                used["name"]: amount(used.get("total") or 0)
                for usage in status.get("flavorsReservation") or []
                if usage["name"] == flavor.get("name")
                for used in usage.get("resources") or []
            },
            waits=bool(status.get("pendingWorkloads")),
        )

    def with_limits(self, groups: list[Json], limits: Amounts) -> list[Json]:
        """Return resource groups with the flavor's lending limits; a resource that is lent altogether has none."""
        if not self.nominal:
            return groups
        first, *others = groups
        flavors = list(first["flavors"])
        entries = [self._limited(entry, limits[entry["name"]]) for entry in flavors[self.flavor]["resources"]]
        flavors[self.flavor] = {**flavors[self.flavor], "resources": entries}
        return [{**first, "flavors": flavors}, *others]

    def _limited(self, entry: Json, limit: int) -> Json:
        name = entry["name"]
        result = {key: value for key, value in entry.items() if key != "lendingLimit"}
        if limit == self.declared[name] and name in self.spelled:
            result["lendingLimit"] = self.spelled[name]
        elif limit < self.nominal[name]:
            kept = entry.get("lendingLimit")
            result["lendingLimit"] = kept if kept is not None and amount(kept) == limit else quantity(limit)
        return result


def usable(nodes: Iterable[Node], rules: NodeRules) -> dict[str, int]:
    """Return what can be counted on of each resource of a pool, nodes that an autoscaler may still add among it."""
    total, there = dict.fromkeys(rules.resources, 0), 0
    for node in (each for each in nodes if each.pool == rules.name):
        there += 1
        for name, value in node.counted.items():
            total[name] += value
    missing = max(0, rules.most - max(there, rules.least))
    return {name: value + missing * rules.shape.get(name, 0) for name, value in total.items()}


def limits(queues: Iterable[Queue], slack: Queue, there: Amounts) -> dict[str, dict[str, int]]:
    """Return how much each queue of the slack queue's cohort lends at most, by resource. there: what is usable."""
    members = [queue for queue in queues if queue.name == slack.name or (slack.cohort and queue.cohort == slack.cohort)]
    result = {queue.name: dict(queue.declared) for queue in members}
    teams = sorted((queue for queue in members if queue.name != slack.name), key=lambda queue: queue.name)
    for name in there:
        loss = max(0, sum(queue.nominal.get(name, 0) for queue in members) - there[name])
        if not loss:
            continue
        if name in slack.nominal:
            result[slack.name][name] = min(slack.declared[name], _whole(max(0, slack.nominal[name] - loss)))
        if loss > slack.nominal.get(name, 0):
            for team, limit in lent([team for team in teams if name in team.nominal], name, there[name]).items():
                result[team][name] = limit
        if not any(lends.get(name) for lends in result.values()):
            least = next((queue for queue in [slack, *teams] if queue.declared.get(name, 0) >= PIECE), None)
            if least is not None:
                result[least.name][name] = PIECE
    return result


def lent(teams: list[Queue], name: str, there: int) -> dict[str, int]:
    """Return by team how much of a resource it lends where the slack queue lends none; see the module's docstring.

    Whole pieces; those that do not divide go to the largest remainders.
    """
    held = {team.name: min(team.nominal[name], team.held.get(name, 0)) for team in teams}
    own = {team.name: team.nominal[name] if team.waits else held[team.name] for team in teams}
    idle = {team.name: _whole(min(team.nominal[name] - own[team.name], team.declared[name])) for team in teams}
    room, wanted = _whole(max(0, there - sum(own.values()))), sum(idle.values())
    shares = idle
    if wanted > room:
        shares = {team: _whole(part * room // wanted) for team, part in idle.items()}
        pieces = (room - sum(shares.values())) // PIECE
        by_remainder = sorted(idle, key=lambda team: (-(idle[team] * room % (wanted * PIECE)), team))
        shares = {team: share + PIECE * (team in by_remainder[:pieces]) for team, share in shares.items()}
    return {
        team.name: team.declared[name] if held[team.name] == team.nominal[name] else shares[team.name] for team in teams
    }


def _whole(thousandths: int) -> int:
    return thousandths // PIECE * PIECE
