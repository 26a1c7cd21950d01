"""How pods are ranked, and which scheduler places those of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components import catalogue, names
from components.kubernetes.cluster import Cluster
from components.kubernetes.controller import ControllerPods
from components.layer import Layer
from components.scheduling import coscheduling, sakkara
from components.scheduling.coscheduling import Coscheduling, CoschedulingArgs
from components.scheduling.packing import Packing
from components.scheduling.priorities import Priorities, PrioritiesArgs
from components.scheduling.sakkara import Sakkara, SakkaraArgs
from components.tenancy.pod_policy import DEFAULT_SCHEDULER
from stacks.config.inputs import StackInputs
from stacks.layers.releases import Releases


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """What places the pods of jobs in queues.

    scheduler: its name; empty for the cluster's own. has_pod_groups: it binds the pods of a PodGroup together.
    ready: before somebody submits a job.
    """

    scheduler: str = ""
    has_pod_groups: bool = False
    ready: Sequence[Layer] = ()


def install(inputs: StackInputs[Any], releases: Releases, cluster: Cluster) -> Scheduling:
    """Register the priority classes, which the queues and their jobs name, and the second scheduler."""
    settings = inputs.settings
    if not settings.queueing.enabled:
        return Scheduling()
    ready: list[Layer] = []
    if settings.scheduling.priority_classes:
        default = names.DEFAULT_PRIORITY if cluster.default_priority is None else None
        ready.append(Priorities("priorities", PrioritiesArgs(default=default), cluster.options()))
    if settings.scheduling.packing is Packing.SAKKARA:
        ready.append(Sakkara("sakkara", _sakkara(inputs, releases, cluster), cluster.options()))
        return Scheduling(scheduler=sakkara.SCHEDULER, has_pod_groups=True, ready=ready)
    if settings.scheduling.packing is not Packing.COSCHEDULING:
        return Scheduling(ready=ready)
    args = CoschedulingArgs(
        releases=releases.scheduler_plugins,
        gpu_resource=cluster.gpu_resource,
        permit_seconds=settings.scheduling.coscheduling.permit_seconds,
        pods=operator_pods(inputs, cluster),
    )
    ready.append(Coscheduling("coscheduling", args, cluster.options()))
    return Scheduling(scheduler=coscheduling.SCHEDULER, has_pod_groups=True, ready=ready)


def _sakkara(inputs: StackInputs[Any], releases: Releases, cluster: Cluster) -> SakkaraArgs:
    return SakkaraArgs(
        pod_groups=releases.scheduler_plugins[0],
        image=inputs.mirror.image(catalogue.SAKKARA.reference),
        topology=inputs.settings.scheduling.sakkara.topology(),
        gpu_resource=cluster.gpu_resource,
        pods=operator_pods(inputs, cluster),
    )


def operator_pods(inputs: StackInputs[Any], cluster: Cluster) -> ControllerPods:
    """Return how the pods of schedulers and operators run."""
    return ControllerPods(
        replicas=inputs.settings.queueing.replicas, nodes=cluster.placement.system, pod_security=cluster.pod_security
    )


def second_scheduler(packing: Packing) -> str | None:
    """Return the name of the scheduler that places the pods of queued jobs, None for the cluster's own."""
    return {Packing.COSCHEDULING: coscheduling.SCHEDULER, Packing.SAKKARA: sakkara.SCHEDULER}.get(packing)


def schedulers(inputs: StackInputs[Any]) -> Sequence[str]:
    """Return the names of the schedulers that pods may ask for."""
    second = second_scheduler(inputs.settings.scheduling.packing)
    return (DEFAULT_SCHEDULER, *([second] if second is not None else []))
