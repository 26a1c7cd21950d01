"""The operators that admit jobs: Kueue and AppWrapper."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from components import catalogue, names
from components.artifacts import Release
from components.compatibility import reclaims_while_borrowing
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.security import PodSecurity
from components.layer import Layer
from components.observability.prometheus import (
    AppWrapperMonitor,
    KueueMonitor,
    KueueMonitorArgs,
    Monitoring,
    scrapers,
    unwatched,
)
from components.queueing.appwrapper import AppWrappers, AppWrappersArgs
from components.queueing.fault_tolerance import DEFAULTS, FaultTolerance
from components.queueing.jobset import JobSets, JobSetsArgs
from components.queueing.kuberay import KubeRay, KubeRayArgs
from components.queueing.kueue import GATES, GATES_BEFORE, FairSharing, Kueue, KueueArgs, PodsReady
from components.queueing.migration import StoredVersions, StoredVersionsArgs
from components.queueing.network import OperatorsNetwork, OperatorsNetworkArgs
from components.queueing.trainer import Trainer, TrainerArgs
from components.queueing.training_operator import TrainingOperator, TrainingOperatorArgs
from components.scheduling.topology import narrowest
from components.workloads.pods import capabilities
from stacks.config.inputs import StackInputs
from stacks.layers.releases import Releases
from stacks.layers.scheduling import Scheduling, operator_pods
from stacks.layers.site import SiteLayers


@dataclass(frozen=True, kw_only=True)
class Queueing:
    """The operators. namespace: theirs. kueue: before somebody makes queues; ready: before one submits a job.

    kueue is empty if the cluster has its own.
    """

    namespace: Namespace
    kueue: Sequence[Layer]
    ready: Sequence[Layer]


def install(
    inputs: StackInputs[Any],
    releases: Releases,
    cluster: Cluster,
    site: SiteLayers,
    metrics: Monitoring | None,
    scheduling: Scheduling,
) -> Queueing | None:
    """Register the operators; return them where they are wanted."""
    if not inputs.settings.queueing.enabled:
        return None
    labels = unwatched(cluster.pod_security) if metrics is not None else {}
    own = NamespaceArgs(name=names.SYSTEM_NAMESPACE, critical=True, labels=labels)
    system = Namespace("system", own, cluster.options())
    if inputs.settings.tenancy.network.enabled:
        readers = (scrapers(inputs.settings.monitoring.namespace),) if metrics is not None else ()
        network_args = OperatorsNetworkArgs(namespace=names.SYSTEM_NAMESPACE, scrapers=readers)
        OperatorsNetwork("system-network", network_args, cluster.options(system))
    brought = site.operators(scheduling, _fault_tolerance(inputs))
    if brought is not None:
        return Queueing(namespace=system, kueue=[brought], ready=[*scheduling.ready, brought])
    wrappers = _appwrapper(inputs, releases, cluster, system, scheduling)
    jobs = _job_operators(inputs, releases, cluster, system, scheduling)
    operators: list[Any] = [wrappers, *jobs]
    # So that Kueue finds the kinds when it starts.
    definitions = [definition for each in operators for definition in each.definitions]
    kueue: list[Layer] = []
    if releases.kueue is not None:
        kinds = [kind for each in jobs for kind in each.kinds]
        kueue.append(_kueue(inputs, releases.kueue, cluster, cluster.options(system, *definitions), kinds))
    elif (other := site.kueue(definitions)) is not None:
        kueue.append(other)
    if (brought := site.job_operators(kueue)) is not None:
        operators.append(brought)
    if metrics is not None:
        running = inputs.resolved.running_kueue
        reader = scrapers(inputs.settings.monitoring.namespace)
        monitor = KueueMonitorArgs(namespace=running.namespace, reader=reader) if running else KueueMonitorArgs()
        KueueMonitor("kueue-monitor", monitor, cluster.options(metrics, *kueue))
        AppWrapperMonitor("appwrapper-monitor", cluster.options(metrics, *operators))
    return Queueing(namespace=system, kueue=kueue, ready=[*scheduling.ready, *kueue, *operators])


def _appwrapper(
    inputs: StackInputs[Any], releases: Releases, cluster: Cluster, system: Namespace, scheduling: Scheduling
) -> AppWrappers:
    """Register AppWrapper. Raises ValueError without its files."""
    if releases.appwrapper is None:
        raise ValueError("AppWrapper needs upstream's manifest")
    wrapper_args = AppWrappersArgs(
        release=releases.appwrapper,
        scheduler_name=scheduling.scheduler,
        fault_tolerance=_fault_tolerance(inputs),
        gpu_resource=cluster.gpu_resource,
        pods=operator_pods(inputs, cluster),
    )
    return AppWrappers("appwrapper", wrapper_args, cluster.options(system))


def _kueue(
    inputs: StackInputs[Any],
    release: Release,
    cluster: Cluster,
    options: pulumi.ResourceOptions,
    kinds: Sequence[str],
) -> Kueue:
    """Register Kueue, and the Job that rewrites its objects after an update. kinds: of jobs, see KueueArgs."""
    recovery = inputs.settings.recovery
    pods_ready = PodsReady(
        start_seconds=recovery.start_timeout_minutes * 60, recovery_seconds=recovery.recovery_timeout_seconds
    )
    kueue_args = KueueArgs(
        release=release,
        kinds=kinds,
        pods_ready=pods_ready,
        fair_sharing=_fair_sharing(inputs, cluster),
        gates=GATES if reclaims_while_borrowing(inputs.settings.queueing.kueue_version) else GATES_BEFORE,
        pods=operator_pods(inputs, cluster),
    )
    kueue = Kueue("kueue", kueue_args, options)
    migration = StoredVersionsArgs(
        release=inputs.settings.queueing.kueue_version,
        image=inputs.mirror.image(catalogue.PYTHON.reference),
        nodes=cluster.placement.system,
        pod_security=cluster.pod_security,
    )
    StoredVersions("stored-versions", migration, cluster.options(kueue))
    return kueue


def _fair_sharing(inputs: StackInputs[Any], cluster: Cluster) -> FairSharing | None:
    if not any(team.user_fair_sharing for team in inputs.settings.teams):
        return None
    minutes = inputs.settings.queueing.fair_sharing_half_life_minutes
    return FairSharing(half_life_minutes=minutes, resource=cluster.gpu_resource)


def _job_operators(
    inputs: StackInputs[Any], releases: Releases, cluster: Cluster, system: Namespace, scheduling: Scheduling
) -> Sequence[TrainingOperator | KubeRay | JobSets | Trainer]:
    """Register the operators that make the pods of jobs, those that are wanted."""
    pods, found = operator_pods(inputs, cluster), list[TrainingOperator | KubeRay | JobSets | Trainer]()
    if releases.job_set is not None:
        sets = JobSetsArgs(release=releases.job_set, pods=pods)
        found.append(JobSets("jobset", sets, cluster.options(system)))
    if releases.training_operator is not None:
        training = TrainingOperatorArgs(
            release=releases.training_operator,
            init_image=inputs.mirror.image(catalogue.ALPINE.reference),
            scheduler=scheduling.scheduler if scheduling.has_pod_groups else "",
            pods=pods,
        )
        # It looks for the definition of PodGroup when it starts, and ends without it.
        after = cluster.options(system, *scheduling.ready)
        found.append(TrainingOperator("training-operator", training, after))
    if releases.trainer_kinds:
        trainer = _trainer(inputs, releases, cluster, scheduling)
        # It looks for the definitions of JobSet and PodGroup when it starts.
        kinds = [definition for each in found for definition in each.definitions]
        found.append(Trainer("trainer", trainer, cluster.options(system, *scheduling.ready, *kinds)))
    if releases.ray_role is not None:
        ray = KubeRayArgs(
            definitions=releases.ray_kinds,
            role=releases.ray_role,
            python=inputs.mirror.image(catalogue.PYTHON.reference),
            pods=pods,
        )
        found.append(KubeRay("kuberay", ray, cluster.options(system)))
    return found


def _trainer(inputs: StackInputs[Any], releases: Releases, cluster: Cluster, scheduling: Scheduling) -> TrainerArgs:
    has_own = cluster.pod_security is PodSecurity.STANDARDS
    return TrainerArgs(
        definitions=releases.trainer_kinds,
        scheduler=scheduling.scheduler,
        gang_seconds=inputs.settings.scheduling.coscheduling.permit_seconds if scheduling.has_pod_groups else None,
        capabilities=capabilities(cluster.fabric) if has_own else {},
        near=narrowest(inputs.settings.scheduling.topology.levels),
        pods=operator_pods(inputs, cluster),
    )


def _fault_tolerance(inputs: StackInputs[Any]) -> FaultTolerance:
    """Return AppWrapper's own, with the bounds of what jobs may ask for: they hold without an admission policy, too."""
    bounds = inputs.settings.tenancy.jobs.bounds()
    return replace(
        DEFAULTS,
        retry_pause=inputs.settings.recovery.retry_pause_seconds,
        forced_deletion_grace=bounds.forced_deletion_grace,
        grace_ceiling=bounds.longest,
    )
