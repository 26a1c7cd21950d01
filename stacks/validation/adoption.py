"""Checks of a Kueue that the settings adopt: what the platform needs of it, and what its configuration lacks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from components import catalogue, names
from components.compatibility import numbers
from components.job_kinds import APPWRAPPER, SUBMITTED
from components.scheduling.packing import Packing
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import MISSING, ConfigError, Path, key, listed
from stacks.config.others import BY_NAME, CLUSTER_QUEUES, HELM_RELEASE, ExistingKueue
from stacks.derived.partial import PartialSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings
from stacks.validation.others import ADOPT

_OF_KUEUE: Final[tuple[Path, ...]] = (
    ("queueing", "kueueVersion"),
    ("queueing", "fairSharingHalfLifeMinutes"),
    ("recovery", "startTimeoutMinutes"),
    ("recovery", "recoveryTimeoutSeconds"),
)
"""Settings of the configuration of the platform's own Kueue."""
_REJECTS: Final = (((2, 23), (2, 25, 9)), ((3, 0), (3, 4)))
"""Versions of OpenShift AI, from and before, whose webhook rejects jobs without a queue label in managed namespaces.
Jobs in AppWrappers have none (red-hat-data-services/rhods-operator, `internal/webhook/kueue/validating.go`)."""
_MANAGED: Final = "kueue.openshift.io/managed"
_OLDEST: Final = (0, 11)
"""The first Kueue with an integration for AppWrappers (kubernetes-sigs/kueue, CHANGELOG/CHANGELOG-0.11.md)."""


def check(partial: PartialSettings, queueing: QueueingSettings) -> Iterator[ConfigError]:
    """Yield errors of an adoption that cannot work, and of settings that it makes ineffective."""
    if not queueing.enabled or not queueing.adopt or partial.target is None:
        return
    if not partial.target.has_kubeconfig:
        yield ConfigError(
            ADOPT, f"target {partial.target.name} creates its own cluster, without a Kueue", "remove the key"
        )
        return
    for path in _OF_KUEUE:
        if partial.written(path) is not MISSING:
            yield ConfigError(
                path,
                f"this configures a Kueue that the stack installs, and {key(ADOPT)} uses the cluster's own",
                "remove the key, and change the configuration of that Kueue",
            )
    if partial.facts is not None:
        yield from _unsuited(partial, partial.facts)


def warnings(partial: PartialSettings, queueing: QueueingSettings, facts: ClusterFacts) -> Iterator[str]:
    """Yield what the configuration of an adopted Kueue lacks."""
    kueue = facts.kueue
    if not queueing.enabled or not queueing.adopt or kueue is None:
        return
    lacks = listed(_lacking(kueue.configuration, kueue.frameworks), "; ")
    if lacks != listed(()):
        yield f"Kueue in {kueue.namespace}, from {kueue.owner}, lacks parts of the platform's configuration: {lacks}"
    if kueue.queues:
        yield (
            f"Kueue in {kueue.namespace} also has the ClusterQueues {listed(kueue.queues)}: if they have quota of the "
            "same nodes, jobs of teams may stay pending. Set their stopPolicy to Hold, or lower their quota"
        )


def _unsuited(partial: PartialSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    kueue = facts.kueue
    if kueue is None:
        has_definitions = CLUSTER_QUEUES in facts.definitions
        yield ConfigError(
            ADOPT,
            "this cluster has Kueue's definitions, but no Deployment of Kueue"
            if has_definitions
            else "this cluster has no Kueue that somebody else has installed",
            "install Kueue again, or remove the key if you uninstalled it" if has_definitions else "remove the key",
        )
        return
    if kueue.version is not None and numbers(kueue.version) < _OLDEST:
        yield ConfigError(
            ADOPT,
            f"Kueue in {kueue.namespace} has version {kueue.version}, and only 0.11 or later queues AppWrappers",
            "upgrade it, or uninstall it and remove the key",
        )
    elif APPWRAPPER.framework not in kueue.frameworks:
        yield ConfigError(
            ADOPT,
            f"Kueue in {kueue.namespace} does not queue AppWrappers: they would stay suspended",
            _queue_appwrappers(kueue),
        )
    version = (facts.data_science and facts.data_science.version) or ""
    parts = tuple(map(int, re.findall(r"\d+", version)))
    has_webhook = any(first <= parts < last for first, last in _REJECTS)
    if has_webhook and _MANAGED in str(kueue.configuration):
        yield ConfigError(
            ADOPT,
            f"OpenShift AI {version} rejects jobs in AppWrappers in the namespaces that this Kueue manages",
            "upgrade OpenShift AI to 2.25.9 or 3.4, or uninstall it",
        )
    scheduling = partial.section(SchedulingSettings)
    if scheduling is not None and scheduling.packing is Packing.TOPOLOGY and kueue.api != names.KUEUE_API:
        yield ConfigError(
            ("scheduling", "packing"),
            f"Kueue in {kueue.namespace} stores its objects in {kueue.api}: topology needs 0.16 or later",
            "choose one of these, or upgrade that Kueue",
            expected=listed([each.value for each in Packing if each is not Packing.TOPOLOGY]),
        )
    selector = kueue.configuration.get("managedJobsNamespaceSelector") or {}
    chosen = [each["key"] for each in selector.get("matchExpressions") or () if each["operator"] == "In"]
    if BY_NAME in chosen or BY_NAME in (selector.get("matchLabels") or {}):
        yield ConfigError(
            ADOPT,
            f"Kueue in {kueue.namespace} manages namespaces by name, without those of teams",
            f"select namespaces by a label in its managedJobsNamespaceSelector, such as {names.TEAM_LABEL}",
        )
    for index, team in partial.numbered_teams:
        if team.user_fair_sharing and "admissionFairSharing" not in kueue.configuration:
            yield ConfigError(
                ("teams", index, "userFairSharing"),
                f"Kueue in {kueue.namespace} does not record the usage of users",
                "remove it, or set admissionFairSharing in the configuration of that Kueue",
            )


def _queue_appwrappers(kueue: ExistingKueue) -> str:
    """Return how to make a Kueue queue AppWrappers, which depends on what installed it.

    Sources: openshift/kueue-operator, pkg/apis/kueueoperator/v1; kubernetes-sigs/kueue, charts/kueue.
    """
    if kueue.namespace == catalogue.entry(catalogue.RED_HAT_OPERATORS, package="kueue-operator").namespace:
        return f"add {APPWRAPPER.kind} to spec.config.integrations.frameworks of kueues.kueue.openshift.io cluster"
    added = f"add {APPWRAPPER.framework} to integrations.frameworks in "
    if kueue.owner.startswith(HELM_RELEASE):
        return f"{added}managerConfig.controllerManagerConfigYaml of its Helm values, and run helm upgrade"
    return f"{added}its configuration, and restart it"


def _lacking(configuration: Mapping[str, Any], frameworks: Any) -> Iterator[str]:
    """Yield a consequence for each part of the platform's configuration that a Kueue does not have."""
    unqueued = [kind.kind for kind in SUBMITTED if kind.framework not in frameworks]
    if unqueued:
        yield f"integrations.frameworks (these stay suspended outside AppWrappers: {listed(unqueued)})"
    if not configuration.get("manageJobsWithoutQueueName"):
        yield "manageJobsWithoutQueueName (jobs without a queue stay suspended)"
    ready = configuration.get("waitForPodsReady")
    if not ready or ready.get("enable") is False:
        yield "waitForPodsReady (a job that lost its nodes keeps waiting while others use its quota)"
    shares = configuration.get("fairSharing")
    if not shares or shares.get("enable") is False:
        yield "fairSharing (priority and age alone decide who borrows)"
