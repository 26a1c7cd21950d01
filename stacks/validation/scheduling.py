"""Checks priority classes and packing against the cluster's classes, version and autoscaler."""

from collections.abc import Iterator

from components.compatibility import SAKKARA_KUBERNETES, SCHEDULER_PLUGINS_KUBERNETES, goes_with, numbers
from components.scheduling.packing import Packing
from components.scheduling.priorities import PRIORITIES
from stacks.config.errors import ConfigError, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings


def check(partial: PartialSettings, scheduling: SchedulingSettings) -> Iterator[ConfigError]:
    """Yield errors that prevent queued jobs from being created or scheduled."""
    queueing = partial.section(QueueingSettings)
    if queueing is not None and not queueing.enabled:
        return
    if not scheduling.priority_classes:
        yield from _ranks(partial)
    if scheduling.packing is Packing.COSCHEDULING:
        yield from _version(partial)
    if scheduling.packing is Packing.TOPOLOGY:
        yield from _growing(partial)


def warnings(partial: PartialSettings, scheduling: SchedulingSettings) -> Iterator[str]:
    """Yield warnings about Sakkara: it is experimental, and made for older clusters."""
    queueing = partial.section(QueueingSettings)
    if scheduling.packing is not Packing.SAKKARA or (queueing and not queueing.enabled):
        return
    first, last = SAKKARA_KUBERNETES
    version = partial.kubernetes_version
    if version is not None and not goes_with(SAKKARA_KUBERNETES, version):
        yield (
            f"Sakkara is made for Kubernetes {first} to {last}, and this cluster has {version}, where it is untested. "
            f"Set mlbatch:scheduling.packing to {Packing.COSCHEDULING} for a scheduler that supports it"
        )
    yield (
        "Sakkara preempts other gangs' pods, of any team, for a gang of higher priority, and members choose the "
        "priority: quotas do not protect a team from that. "
        f"Set mlbatch:scheduling.packing to {Packing.COSCHEDULING} to enforce quotas"
    )


def _ranks(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject missing priority classes: the API server rejects pods that name an unknown class.

    A cluster that the stack creates has none of them.
    """
    target, facts = partial.target, partial.facts
    if target is None or (target.has_kubeconfig and facts is None):
        return
    there = facts.priority_classes if facts is not None else frozenset()
    missing = [name for name in PRIORITIES if name not in there]
    if missing:
        yield ConfigError(
            ("scheduling", "priorityClasses"),
            f"the cluster has no priority class {listed(missing)}, which jobs and the rules for teams use",
            "remove the key",
        )


def _growing(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject topology-aware admission on an autoscaled pool: Kueue and the autoscaler would wait for each other."""
    if any(pool.minimum is not None and pool.minimum < pool.count for pool in partial.pools):
        yield ConfigError(
            ("scheduling", "packing"),
            "Kueue does not admit a job before its nodes exist, and the autoscaler does not add nodes before "
            "the job is admitted",
            f"set it to {Packing.COSCHEDULING}, or give the pool a fixed number of nodes",
            expected=listed([Packing.COSCHEDULING, Packing.NONE]),
        )


def _version(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject a second scheduler that is newer than the cluster's API server, or too old for it."""
    version, kubernetes = partial.scheduler_version, partial.kubernetes_version
    if kubernetes is None or goes_with(SCHEDULER_PLUGINS_KUBERNETES[version], kubernetes):
        return
    suited = [known for known, minors in SCHEDULER_PLUGINS_KUBERNETES.items() if goes_with(minors, kubernetes)]
    first, last = SCHEDULER_PLUGINS_KUBERNETES[version]
    other = (
        f"set mlbatch:scheduling.schedulerVersion to {suited[0]}"
        if suited
        else f"set mlbatch:scheduling.packing to {Packing.TOPOLOGY} or {Packing.NONE}"
    )
    offered = partial.target.kubernetes_versions if partial.target is not None else ()
    upgraded = next((known for known in offered if goes_with((first, last), known)), None)
    if upgraded is not None or not offered:
        other += f", or {partial.version_key} to {upgraded or last}"
    every = sorted({minor for minors in SCHEDULER_PLUGINS_KUBERNETES.values() for minor in minors}, key=numbers)
    yield ConfigError(
        ("scheduling", "schedulerVersion"),
        f"scheduler-plugins {version} supports Kubernetes {first} to {last}, this cluster has {kubernetes}"
        if suited
        else f"no version of scheduler-plugins supports Kubernetes {kubernetes}",
        other,
        value=version,
        expected=listed(suited) if suited else f"a cluster with Kubernetes {every[0]} to {every[-1]}",
    )
