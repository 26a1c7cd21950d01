"""Checks that the stack does not install what somebody else has installed on the cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from components.job_kinds import APPWRAPPER, JOB_SET, POD_GROUP, PYTORCH_JOB, RAY_CLUSTER, TRAIN_JOB
from components.openshift_ai import installation
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import MISSING, ConfigError, Path, key, listed
from stacks.config.others import CLUSTER_QUEUES, OPENSHIFT_AI, spoken
from stacks.derived.partial import PartialSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings, TenancySettings
from stacks.validation.network import has_teams

ADOPT: Final[Path] = ("queueing", "adopt")
RAY_OPERATORS: Final[Path] = ("tenancy", "network", "rayOperators")
_QUEUES: Final[Path] = ("queueing", "enabled")
_SWITCHES: Final[Mapping[str, Path]] = {
    CLUSTER_QUEUES: _QUEUES,
    APPWRAPPER.resource: _QUEUES,
    PYTORCH_JOB.resource: ("queueing", "trainingOperator", "enabled"),
    RAY_CLUSTER.resource: ("queueing", "kuberay", "enabled"),
    JOB_SET.resource: ("queueing", "jobSet", "enabled"),
    TRAIN_JOB.resource: ("queueing", "trainer", "enabled"),
    POD_GROUP.resource: ("scheduling", "packing"),
}
"""The setting that installs the operator of each definition."""
_COMPONENTS: Final[Mapping[str, str]] = {
    CLUSTER_QUEUES: "kueue",
    APPWRAPPER.resource: "codeflare",
    PYTORCH_JOB.resource: "trainingoperator",
    RAY_CLUSTER.resource: "ray",
    TRAIN_JOB.resource: "trainer",
}
"""The component of a DataScienceCluster that installs each definition."""


def check(partial: PartialSettings, queueing: QueueingSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield one error for each owner of definitions that the stack would install again.

    With an adopted Kueue, the operators of jobs may stay, and have an error of their own.
    The engine would refuse them one by one (pulumi-kubernetes, upsertExistingObjects).
    """
    if not queueing.enabled or partial.target is None or not partial.target.installs_operators(partial):
        return
    found: dict[tuple[str, bool], list[str]] = {}
    for name in _installed(partial, queueing):
        if name in facts.definitions:
            stays = queueing.adopt and _SWITCHES[name] != _QUEUES
            found.setdefault((facts.definitions[name], stays), []).append(name)
    for (owner, _), defined in found.items():
        switches = list(dict.fromkeys(_switch(name, queueing) for name in defined))
        yield ConfigError(
            switches[0],
            f"this cluster already has {listed(defined)}, from {_named(owner, facts)}",
            _fix(owner, defined, switches, facts),
            value=MISSING,
        )


def warnings(partial: PartialSettings, facts: ClusterFacts) -> Iterator[str]:
    """Yield warnings about a Trainer and a KubeRay of others that cannot run jobs of teams.

    The admission policies know the account of the stack's own Trainer (components/tenancy/callers.py). KubeRay reads
    the status of each RayJob from its dashboard, which NetworkPolicies of teams close.
    """
    if has_teams(partial) and TRAIN_JOB.resource in facts.definitions:
        owner = _named(facts.definitions[TRAIN_JOB.resource], facts)
        yield f"TrainJobs of teams do not start: the platform does not support the Trainer from {owner}"
    tenancy, ai = partial.section(TenancySettings), facts.data_science
    if has_teams(partial) and ai is not None and "ray" in ai.components and tenancy is not None:
        network = tenancy.network
        if network.enabled and installation.NAMESPACE not in network.ray_operators:
            yield (
                "RayJobs of teams neither start nor end: their network is closed to KubeRay of OpenShift AI. Add "
                f"{installation.NAMESPACE} to {key(RAY_OPERATORS)}"
            )


def _installed(partial: PartialSettings, queueing: QueueingSettings) -> Iterator[str]:
    """Yield the definitions that the settings install."""
    scheduling = partial.section(SchedulingSettings)
    switched_on = {
        CLUSTER_QUEUES: not queueing.adopt and partial.running_kueue is None,
        APPWRAPPER.resource: True,
        PYTORCH_JOB.resource: queueing.training_operator.enabled,
        RAY_CLUSTER.resource: queueing.kuberay.enabled,
        JOB_SET.resource: queueing.job_set.enabled or queueing.trainer.enabled,
        TRAIN_JOB.resource: queueing.trainer.enabled,
        POD_GROUP.resource: scheduling is not None and scheduling.packing.has_pod_groups,
    }
    yield from (name for name in _SWITCHES if switched_on[name])


def _switch(name: str, queueing: QueueingSettings) -> Path:
    """Return the setting that installs a definition. Trainer also installs JobSet."""
    by_trainer = name == JOB_SET.resource and not queueing.job_set.enabled
    return _SWITCHES[TRAIN_JOB.resource if by_trainer else name]


def _named(owner: str, facts: ClusterFacts) -> str:
    if owner != OPENSHIFT_AI or facts.data_science is None:
        return owner
    return facts.data_science.described


def _fix(owner: str, defined: Sequence[str], switches: Sequence[Path], facts: ClusterFacts) -> str:
    if defined == [POD_GROUP.resource]:
        return "set it to topology or none, or uninstall scheduler-plugins with its definitions"
    if _QUEUES not in switches:
        switched = listed(map(key, switches), " and ")
        return f"remove {switched}: Kueue also queues the jobs of the existing operator"
    if owner == OPENSHIFT_AI and facts.data_science is not None:
        known = [_COMPONENTS[name] for name in defined if name in _COMPONENTS]
        running = spoken([each for each in known if each in facts.data_science.components])
        removed = f"set {running} to Removed in DataScienceCluster {facts.data_science.name}, and " if running else ""
        return f"{removed}delete these definitions, in the order of docs/openshift.md"
    if CLUSTER_QUEUES in defined and APPWRAPPER.resource not in defined and facts.kueue is not None:
        return f"set {key(ADOPT)} to true to use this Kueue, or uninstall it with its definitions and all queues"
    return "uninstall it, with these definitions: this deletes all objects of these kinds"
