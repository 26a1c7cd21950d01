"""Whether ranks and the way of packing go with the cluster: with what it has, its Kubernetes, and how nodes come."""

from __future__ import annotations

from collections.abc import Iterator

from components.compatibility import SAKKARA_KUBERNETES, SCHEDULER_PLUGINS_KUBERNETES, goes_with
from components.scheduling.packing import Packing
from components.scheduling.priorities import PRIORITIES
from stacks.config.errors import ConfigError, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings
from stacks.targets.spec import TargetSpec


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what keeps the jobs of queues from being made or placed; without queues there are none."""
    scheduling, queueing = partial.section(SchedulingSettings), partial.section(QueueingSettings)
    if scheduling is None or (queueing is not None and not queueing.enabled):
        return
    if not scheduling.priority_classes:
        yield from _ranks(partial)
    if scheduling.packing is Packing.COSCHEDULING:
        yield from _version(partial, scheduling)
    if scheduling.packing is Packing.TOPOLOGY:
        yield from _growing(partial, scheduling)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield what is known of Sakkara to its disadvantage: it is experimental, and made for older clusters."""
    scheduling, queueing = partial.section(SchedulingSettings), partial.section(QueueingSettings)
    if scheduling is None or scheduling.packing is not Packing.SAKKARA or (queueing and not queueing.enabled):
        return
    first, last = SAKKARA_KUBERNETES
    version = partial.kubernetes_version
    if version is not None and not goes_with(SAKKARA_KUBERNETES, version):
        yield (
            f"Sakkara is made for Kubernetes {first} to {last}, and this cluster has {version}: nobody has said that "
            f"it works there; set {key(('scheduling', 'packing'))} to {Packing.COSCHEDULING} for a scheduler that does"
        )
    yield (
        "Sakkara ends the pods of other gangs for one of a higher priority, whichever team they are of, and a member "
        "gives a gang its priority: what a team is promised of its quota holds with "
        f"{key(('scheduling', 'packing'))} {Packing.COSCHEDULING} alone"
    )


def _ranks(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse to leave out priority classes that the cluster does not have: the API server takes no pod that names one.

    A cluster that the stack makes has none of them yet.
    """
    target, facts = partial.target, partial.facts
    if target is None or (target.has_kubeconfig and facts is None):
        return
    there = facts.priority_classes if facts is not None else frozenset()
    missing = [name for name in PRIORITIES if name not in there]
    if missing:
        yield ConfigError(
            path=("scheduling", "priorityClasses"),
            value=False,
            message=f"the cluster has no priority class {listed(missing)}, which jobs and the rules for teams name",
            expected=f"true, or a cluster that has {listed(PRIORITIES)} already",
            hint="remove the key",
        )


def _growing(partial: PartialSettings, scheduling: SchedulingSettings) -> Iterator[ConfigError]:
    """Refuse to wait for room on nodes that come only when pods wait for them."""
    if any(pool.minimum is not None and pool.minimum < pool.count for pool in partial.pools):
        yield ConfigError(
            path=("scheduling", "packing"),
            value=str(scheduling.packing),
            message="Kueue would admit no job for which the autoscaler has to add nodes first, and the autoscaler adds "
            "none for a job that is not admitted",
            expected=listed([Packing.COSCHEDULING, Packing.NONE]),
            hint=f"set it to {Packing.COSCHEDULING}, or give the pool a fixed number of nodes",
        )


def _version(partial: PartialSettings, scheduling: SchedulingSettings) -> Iterator[ConfigError]:
    """Refuse a second scheduler that is newer than the cluster's API server, or older than it may be."""
    version, kubernetes = partial.scheduler_version, partial.kubernetes_version
    if kubernetes is None or goes_with(SCHEDULER_PLUGINS_KUBERNETES[version], kubernetes):
        return
    suited = [known for known, minors in SCHEDULER_PLUGINS_KUBERNETES.items() if goes_with(minors, kubernetes)]
    first, last = SCHEDULER_PLUGINS_KUBERNETES[version]
    other = (
        f"set {key(('scheduling', 'schedulerVersion'))} to {suited[0]}"
        if suited
        else f"set {key(('scheduling', 'packing'))} to {Packing.TOPOLOGY} or {Packing.NONE}"
    )
    target = partial.target or TargetSpec
    upgraded = next((known for known in target.kubernetes_versions if goes_with((first, last), known)), None)
    kubernetes_key = key(target.version_path) if target.version_path else "the cluster's Kubernetes version"
    if upgraded is not None or not target.kubernetes_versions:
        other += f", or {kubernetes_key} to {upgraded or last}"
    yield ConfigError(
        path=("scheduling", "schedulerVersion"),
        value=version,
        message=f"scheduler-plugins {version} goes with Kubernetes {first} to {last}, this cluster has {kubernetes}",
        expected=listed(suited) if suited else f"a cluster with Kubernetes {first} to {last}",
        hint=other,
    )
