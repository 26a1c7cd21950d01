"""Rules for the health checks: nodes that there are, and figures to hold them to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from components.health.baselines import BASELINES, FLOORS, Floor, Scope
from components.kubernetes.node_pool import NodePool
from stacks.problems import Path, Problem, key, listed
from stacks.reading import Parts
from stacks.rules.admission import nodes_key
from stacks.settings.health import CheckSettings, Mode, NcclGateSettings

_OWN: Final = "the stack's settings"


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with the health checks."""
    settings, pool = parts.health, parts.pool
    if settings is None:
        return
    for name, item in (("nodeCheck", settings.node_check), ("ncclGate", settings.nccl_gate)):
        yield from _common(("health", name), item)
        if pool is not None and item.enabled:
            yield from _nodes(parts, ("health", name), item, pool)
    if settings.node_check.enabled and pool is not None and pool.shape.instance_type not in BASELINES:
        yield Problem(
            path=("health", "nodeCheck", "enabled"),
            value=True,
            wrong=f"nobody has said what a healthy {pool.shape.instance_type} is",
            allowed=f"false, or nodes of {listed(BASELINES)}",
            fix="turn the check off, or take other machines",
        )
    if settings.nccl_gate.enabled:
        yield from _floor(settings.nccl_gate, pool)
        yield from _fabric(parts, settings.nccl_gate, pool)


def floor(settings: NcclGateSettings, pool: NodePool) -> Floor:
    """Return what an all-reduce has to reach; raises KeyError where neither settings nor the machine type say."""
    known = FLOORS.get((pool.shape.instance_type, settings.scope))
    warn, fail = settings.warn_gbs, settings.fail_gbs
    if warn is not None and fail is not None:
        return Floor(expected=known.expected if known else warn, warn=warn, fail=fail, source=_OWN)
    if known is None:
        raise KeyError(pool.shape.instance_type)
    if warn is None and fail is None:
        return known
    return replace(
        known,
        warn=known.warn if warn is None else warn,
        fail=known.fail if fail is None else fail,
        source=f"{_OWN}; {known.source}",
    )


def _common(path: Path, item: CheckSettings) -> Iterator[Problem]:
    if item.mode is Mode.CHECK and item.effect != "NoSchedule":
        yield Problem(
            path=(*path, "effect"),
            value=item.effect,
            wrong="a check without a gate taints no node",
            allowed=f"an effect together with {key((*path, 'mode'))}: gate",
            fix=f"set {key((*path, 'mode'))} to gate, or remove the effect",
        )


def _nodes(parts: Parts, path: Path, item: CheckSettings, pool: NodePool) -> Iterator[Problem]:
    if item.nodes is not None and item.nodes > pool.count:
        yield Problem(
            path=(*path, "nodes"),
            value=item.nodes,
            wrong=f"there are {pool.count} GPU nodes",
            allowed=f"a whole number from 1 to {pool.count}" if pool.count else "no check while there are no GPU nodes",
            fix=f"leave it out for all nodes, or raise {nodes_key(parts)}",
        )
    elif pool.count == 0:
        yield Problem(
            path=(*path, "enabled"),
            value=True,
            wrong="there are no GPU nodes to check",
            allowed="false while the pool is empty",
            fix=f"turn the check off, or raise {nodes_key(parts)}",
        )


def _floor(item: NcclGateSettings, pool: NodePool | None) -> Iterator[Problem]:
    path: Path = ("health", "ncclGate")
    known = FLOORS.get((pool.shape.instance_type, item.scope)) if pool is not None else None
    if pool is not None and known is None:
        for name, value in (("warnGbs", item.warn_gbs), ("failGbs", item.fail_gbs)):
            if value is None:
                yield Problem(
                    path=(*path, name),
                    wrong=f"nobody has said what the all-reduce of a healthy {pool.shape.instance_type} reaches",
                    allowed="a bus bandwidth in GB/s",
                    fix=f"set {key((*path, name))} to what your own machines reach, less a tolerance",
                )
    warn = item.warn_gbs if item.warn_gbs is not None else known.warn if known else None
    fail = item.fail_gbs if item.fail_gbs is not None else known.fail if known else None
    if warn is not None and fail is not None and warn < fail:
        named = "warnGbs" if item.warn_gbs is not None else "failGbs"
        yield Problem(
            path=(*path, named),
            value=item.warn_gbs if item.warn_gbs is not None else item.fail_gbs,
            wrong=f"nodes would fail below {fail:g} GB/s before they are warned of below {warn:g}",
            allowed=f"at least {fail:g}" if named == "warnGbs" else f"at most {warn:g}",
            fix="raise warnGbs or lower failGbs",
        )


def _fabric(parts: Parts, item: NcclGateSettings, pool: NodePool | None) -> Iterator[Problem]:
    path: Path = ("health", "ncclGate")
    if item.scope is not Scope.FABRIC:
        return
    count = item.nodes if item.nodes is not None else pool.count if pool is not None else None
    if count is not None and count < 2:
        yield Problem(
            path=(*path, "scope"),
            value=str(item.scope),
            wrong="one node has no fabric to test: such a test could only be skipped, which is no pass",
            allowed="fabric with two or more nodes; node with one",
            fix=f"set {key((*path, 'scope'))} to node, or test more nodes",
        )
    if parts.workloads is not None and parts.workloads.nccl.tag is None:
        yield Problem(
            path=("workloads", "nccl", "tag"),
            wrong="the gate over several nodes runs the image of the NCCL test, whose tag is not set",
            allowed="a tag of that image",
            fix=f"set {key(('workloads', 'nccl', 'tag'))}, or {key((*path, 'scope'))} to node",
        )
