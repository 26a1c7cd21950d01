"""Rules for the operators of jobs on OpenShift: the platform's own or those of OpenShift AI."""

from collections.abc import Collection, Iterator
from typing import Final

from components import catalogue, names
from components.catalogue import OpenShiftAi
from components.compatibility import goes_with, is_older, numbers
from components.job_kinds import APPWRAPPER, JOB_SET, POD_GROUP, PYTORCH_JOB, TRAIN_JOB
from components.openshift_ai import version_3
from components.scheduling.packing import Packing
from components.workloads.pretraining import Kind
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import MISSING, ConfigError, Path, key, listed
from stacks.config.others import (
    CERTIFICATES,
    CLUSTER_QUEUES,
    OPENSHIFT_AI,
    OPENSHIFT_AI_PACKAGE,
    is_by_olm,
    spoken,
)
from stacks.config.sections import Sections
from stacks.derived.partial import PartialSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings, TenancySettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.openshift.settings import Operators, OperatorsSettings
from stacks.validation.others import RAY_OPERATORS

SECTION: Final = "openshift"
BROUGHT: Final = ("kuberay",)
"""What OpenShift AI 3 installs, by its key in `queueing`."""
_OWN_3: Final[tuple[Path, ...]] = (("queueing", "kueueVersion"), *(("queueing", name) for name in BROUGHT))
_OWN: Final[tuple[Path, ...]] = (*_OWN_3, ("queueing", "appwrapperVersion"), ("queueing", "trainingOperator"))
"""What the platform's own operators are installed by."""
_BESIDE_3: Final = (APPWRAPPER, PYTORCH_JOB, TRAIN_JOB, JOB_SET)
"""Kinds that the platform's own operators define beside OpenShift AI 3 (stacks/validation/others.py checks them)."""
_SERVICE_MESH_2: Final = "servicemeshoperator"
"""Package of OpenShift Service Mesh 2. That of Service Mesh 3 is servicemeshoperator3."""
_WITHOUT_MESH: Final = "4.22"
"""The first OpenShift that serves Gateways without an operator of Service Mesh."""
_PODS_READY: Final[tuple[Path, ...]] = (("recovery", "startTimeoutMinutes"), ("recovery", "recoveryTimeoutSeconds"))


def chosen(sections: Sections) -> OpenShiftAi | None:
    """Return the release of OpenShift AI that brings the operators, None where the platform does."""
    settings = sections.section(OperatorsSettings)
    return settings.release if settings is not None and settings.operators is Operators.OPENSHIFT_AI else None


def is_version_3(sections: Sections) -> bool:
    """Return whether OpenShift AI 3 is installed, with Red Hat build of Kueue."""
    release = chosen(sections)
    return release is not None and not release.brings_kueue


def existing(facts: ClusterFacts) -> Collection[str]:
    """Return the packages that the stack does not install, because the cluster has them from others.

    OLM, Helm or a manifest may have installed cert-manager. Red Hat's Kueue uses only its API
    (openshift/kueue-operator, pkg/operator/target_config_reconciler.go). OLM leaves definitions behind. Those
    alone create no certificates.
    """
    owner = facts.definitions.get(CERTIFICATES)
    is_left = owner is None or is_by_olm(owner, version_3.CERT_MANAGER)
    has_certificates = not is_left and version_3.CERT_MANAGER not in facts.own_subscriptions
    return {*facts.subscriptions, *([version_3.CERT_MANAGER] if has_certificates else [])}


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of settings that OpenShift AI's operators do not support."""
    release = chosen(partial)
    changed = list(_changed(partial, release))
    if changed or release is None:
        yield from changed
        return
    if partial.facts is not None:
        others = list(_others(release, partial.facts))
        yield from others or _cluster(release, partial.facts)
        yield from _service_mesh(release, partial.facts)
    yield from _both_ways(partial, release)
    if release.brings_kueue:
        yield from _missing_in_kueue(partial, release)
        yield from _missing_trainer(partial, release)
    else:
        yield from _missing_in_red_hats_kueue(partial)
    monitoring = partial.section(MonitoringSettings)
    if release.brings_kueue and monitoring is not None and monitoring.enabled:
        yield ConfigError(
            ("monitoring", "enabled"),
            "only OpenShift's own Prometheus reads the metrics of OpenShift AI's Kueue: the platform's "
            "dashboards and alerts for queues would have no data",
            "remove the key, and monitor queues in OpenShift's console",
        )


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about limits of OpenShift AI's operators."""
    release = chosen(partial)
    if release is not None:
        yield (
            f"OpenShift AI {release.version} brings Kueue {release.kueue}, older than the platform's own: a team "
            "borrows less by default, so that it does not wait for its own GPUs (docs/openshift.md)"
        )
        tenancy = partial.section(TenancySettings)
        if len(partial.teams) > 1 and tenancy is not None and "ray_operators" not in tenancy.network.model_fields_set:
            yield (
                "KubeRay of OpenShift AI follows redirects: a team's Ray dashboard can redirect it to another team's. "
                f"If teams do not trust each other, set {key(RAY_OPERATORS)} to [{names.SYSTEM_NAMESPACE}]; RayJobs "
                "then neither start nor end"
            )
        if not release.brings_kueue:
            yield (
                "Red Hat build of Kueue has no time limit for pods that do not start: a job that lost its nodes waits "
                "while other teams use its quota, until AppWrapper retries it (docs/openshift.md)"
            )


def _changed(partial: PartialSettings, release: OpenShiftAi | None) -> Iterator[ConfigError]:
    """Yield the error of settings that replace the operators of a stack: their definitions go with all queues."""
    installed = _installed(partial.facts) if partial.facts is not None else ""
    wanted = release.version if release is not None else Operators.PLAIN
    if installed in ("", wanted) or partial.section(OperatorsSettings) is None:
        return
    has_version = Operators.PLAIN not in (installed, wanted)
    named = "the platform's own operators" if installed == Operators.PLAIN else f"OpenShift AI {installed}"
    before = installed if has_version or installed == Operators.PLAIN else Operators.OPENSHIFT_AI
    yield ConfigError(
        (SECTION, "version" if has_version else "operators"),
        f"a stack has installed {named} on this cluster, and an update would delete its queues and jobs",
        f"set it to {before} again, or remove the stack first (docs/openshift.md, Upgrade or remove)",
    )


def _installed(facts: ClusterFacts) -> str:
    """Return what a stack has installed: `plain`, a version of OpenShift AI, or an empty text.

    Red Hat's Kueue comes before OpenShift AI 3.
    """
    if CLUSTER_QUEUES in facts.own_definitions:
        return Operators.PLAIN
    if OPENSHIFT_AI_PACKAGE in facts.own_subscriptions:
        version = facts.own_subscriptions[OPENSHIFT_AI_PACKAGE].removeprefix(f"{OPENSHIFT_AI_PACKAGE}.")
        return ".".join(version.split(".")[:2])
    with_red_hats = [each.version for each in catalogue.OPENSHIFT_AI if not each.brings_kueue]
    return with_red_hats[0] if version_3.KUEUE in facts.own_subscriptions else ""


def _others(release: OpenShiftAi, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield the error of operators that somebody else has installed, and that OpenShift AI would install again.

    Source: opendatahub-io/opendatahub-operator, whose webhook refuses a second DataScienceCluster.
    """
    path, data_science = (SECTION, "operators"), facts.data_science
    if data_science is not None:
        running = spoken(data_science.operators)
        removed = f" and set {running} to Removed there" if running else ""
        yield ConfigError(
            path,
            f"this cluster already has {data_science.described}, and a cluster can have only one",
            f"uninstall it, or remove the key{removed}: the stack then installs its own operators",
        )
        return
    installed = facts.subscriptions.get(OPENSHIFT_AI_PACKAGE)
    if installed is not None:
        yield ConfigError(
            path,
            f"another Subscription already has OpenShift AI ({installed or 'not installed yet'})",
            "delete that Subscription and its ClusterServiceVersion",
        )
    if not release.brings_kueue and version_3.KUEUE in facts.subscriptions:
        yield ConfigError(
            path,
            f"another Subscription already has Red Hat build of Kueue ({facts.subscriptions[version_3.KUEUE]})",
            f"remove the key and set {key(('queueing', 'adopt'))} to true to use it, or uninstall it",
        )
        return
    own = {OPENSHIFT_AI, POD_GROUP.resource, CERTIFICATES}
    if not release.brings_kueue:
        own |= {kind.resource for kind in _BESIDE_3}
    found = {name: owner for name, owner in facts.definitions.items() if not own & {owner, name}}
    for owner in sorted(set(found.values())):
        defined = listed(sorted(name for name in found if found[name] == owner))
        yield ConfigError(
            path,
            f"OpenShift AI {release.version} would install {defined} again, which this cluster has from {owner}",
            "uninstall it, with these definitions: this deletes all objects of these kinds",
        )


def _cluster(release: OpenShiftAi, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield a release that the catalog of the cluster's OpenShift does not have."""
    if facts.openshift is None or goes_with(release.openshift, facts.openshift):
        return
    first, last = release.openshift
    fitting = [each.version for each in catalogue.OPENSHIFT_AI if goes_with(each.openshift, facts.openshift)]
    yield ConfigError(
        (SECTION, "version"),
        f"this cluster has OpenShift {facts.openshift}, and OpenShift AI {release.version} is only known in "
        f"the catalogs of OpenShift {first} to {last}",
        "choose one of these" if fitting else f"set {key((SECTION, 'operators'))} to {Operators.PLAIN}",
        expected=listed(sorted(fitting, key=numbers)) if fitting else f"an OpenShift from {first} to {last}",
    )


def _service_mesh(release: OpenShiftAi, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield Service Mesh 2, if OpenShift would install Service Mesh 3 for the Gateway of OpenShift AI 3.

    Source: openshift-docs, modules/nw-ingress-gateway-api-enable.adoc; openshift/enhancements,
    enhancements/ingress/gateway-api-without-olm.md.
    """
    mesh = facts.subscriptions.get(_SERVICE_MESH_2)
    if mesh is None or release.brings_kueue or facts.openshift is None or not is_older(facts.openshift, _WITHOUT_MESH):
        return
    yield ConfigError(
        (SECTION, "version"),
        f"this cluster has Service Mesh 2 ({mesh or 'not installed yet'}), and OpenShift {facts.openshift} installs "
        f"Service Mesh 3 for the Gateway of OpenShift AI {release.version}. They cannot run on one cluster",
        f"uninstall Service Mesh 2, update OpenShift to {_WITHOUT_MESH}, or choose a version before 3.0",
    )


def _both_ways(partial: PartialSettings, release: OpenShiftAi) -> Iterator[ConfigError]:
    """Yield what says how the platform's own operators are installed, and queues that are off."""
    queueing = partial.section(QueueingSettings)
    if queueing is not None and not queueing.enabled:
        yield ConfigError(
            (SECTION, "operators"),
            "mlbatch:queueing.enabled is false, but OpenShift AI is installed for its queues",
            "remove one of the two keys",
        )
    if queueing is not None and queueing.adopt:
        yield ConfigError(
            (SECTION, "operators"),
            "mlbatch:queueing.adopt uses the cluster's own Kueue, but OpenShift AI installs one",
            "remove one of the two keys",
        )
    for path in _OWN if release.brings_kueue else _OWN_3:
        if partial.written(path) is not MISSING:
            yield ConfigError(
                path,
                "this would install the operators of jobs twice: OpenShift AI includes its own "
                f"({key((SECTION, 'operators'))}), with the same custom resource definitions",
                "remove the key",
                value=MISSING,
            )


def _missing_in_red_hats_kueue(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield settings that the configuration of Red Hat's Kueue operator does not have (its API, kueue.openshift.io)."""
    for path in _PODS_READY:
        if partial.written(path) is not MISSING:
            yield ConfigError(path, "Red Hat build of Kueue has no setting for this time", "remove the key")


def _missing_trainer(partial: PartialSettings, release: OpenShiftAi) -> Iterator[ConfigError]:
    """Yield a TrainJob: these releases have no operator of them."""
    workloads = partial.section(WorkloadsSettings)
    if workloads is not None and workloads.pretraining.enabled and workloads.pretraining.kind is Kind.TRAIN_JOB:
        yield ConfigError(
            ("workloads", "pretraining", "kind"),
            f"OpenShift AI {release.version} has no Kubeflow Trainer, which creates the pods of TrainJobs",
            "set it to PyTorchJob",
        )


def _missing_in_kueue(partial: PartialSettings, release: OpenShiftAi) -> Iterator[ConfigError]:
    """Yield what the Kueue of a release does not know."""
    path = ("recovery", "recoveryTimeoutSeconds")
    if partial.written(path) is not MISSING:
        yield ConfigError(
            path,
            f"Kueue {release.kueue} of OpenShift AI {release.version} has no waitForPodsReady.recoveryTimeout: "
            "a job that lost its pods gets the start timeout again",
            "remove the key, and set mlbatch:recovery.startTimeoutMinutes, which applies to both",
        )
    scheduling = partial.section(SchedulingSettings)
    if scheduling is not None and scheduling.packing is Packing.TOPOLOGY:
        yield ConfigError(
            ("scheduling", "packing"),
            f"Kueue {release.kueue} of OpenShift AI {release.version} does not have Topology, or only as an "
            "alpha feature",
            "choose one of these",
            expected=listed([each.value for each in Packing if each is not Packing.TOPOLOGY]),
        )
