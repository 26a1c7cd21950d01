"""What follows from a stack's settings: worked out once, after the checks, for composition and outputs alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.health.thresholds import Threshold
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.tenancy.quota import Quota
from stacks.partial import PartialSettings
from stacks.settings.health import HealthSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.validation import isolation


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What follows from the settings.

    pool: the GPU nodes, with the GPUs that pods may ask for. gpu_resource: as which they ask.
    fabric: what a pod that takes a whole one asks of the network.
    has_admission_policies: the cluster judges requests by them. unenforced: promises to teams that nothing holds,
    because it does not.
    slack: the slack queue's quota; quotas: the teams', by name. borrowing_limits: what each team may borrow at most.
    nodes_at_first: how many GPU nodes there are before an autoscaler changes that.
    volumes: claims that workloads may mount, by name, with their namespaces.
    images: that workloads run, by their key, as far as somebody says which. gate_image: of the check of a single node.
    threshold: of the all-reduce that the NCCL gate runs, None where there is none.
    scheduler_version: of scheduler-plugins.
    installs_operators: Kueue, AppWrapper and the operators of jobs come from upstream's manifests.
    """

    pool: NodePool
    gpu_resource: str
    fabric: Fabric
    has_admission_policies: bool
    unenforced: Sequence[str]
    slack: Quota
    quotas: Mapping[str, Quota]
    borrowing_limits: Mapping[str, Quota]
    nodes_at_first: int
    volumes: Mapping[str, str]
    images: Mapping[str, str]
    gate_image: str | None
    threshold: Threshold | None
    scheduler_version: str
    installs_operators: bool


def resolve(partial: PartialSettings) -> Resolved | None:
    """Return what follows from settings, None while something that it follows from could not be read."""
    if partial.target is None or partial.pool is None or partial.fabric is None or partial.slack is None:
        return None
    health = partial.section(HealthSettings)
    return Resolved(
        pool=partial.pool,
        gpu_resource=partial.gpu_resource,
        fabric=partial.fabric,
        has_admission_policies=partial.has_admission_policies is not False,
        unenforced=isolation.unenforced(partial),
        slack=partial.slack,
        quotas=partial.quotas,
        borrowing_limits=partial.borrowing_limits,
        nodes_at_first=partial.target.nodes_at_first(partial, partial.pool),
        volumes=partial.target.volumes(partial) or {},
        images=images(partial.section(WorkloadsSettings), partial.target.registry(partial)),
        gate_image=partial.target.node_check_image(partial),
        threshold=health.nccl_gate.threshold(partial.pool) if health is not None else None,
        scheduler_version=partial.scheduler_version,
        installs_operators=partial.target.installs_operators(partial),
    )


def images(workloads: WorkloadsSettings | None, registry: str | None) -> Mapping[str, str]:
    """Return the images of jobs and viewers by key: their own, else the registry's of the name that the site pushes.

    A viewer without an image runs that of the training, which has the viewers too.
    """
    if workloads is None:
        return {}
    found = {}
    for name, job in workloads.jobs().items():
        repository = job.image or (f"{registry}/{job.repository}" if registry is not None else None)
        if repository is not None and job.tag is not None:
            found[name] = f"{repository}:{job.tag}"
    training = workloads.metaseq
    own = training.image or (f"{registry}/{training.repository}" if registry is not None else None)
    for name, viewer in workloads.viewers().items():
        repository, tag = viewer.image or own, viewer.tag or training.tag
        if repository is not None and tag is not None:
            found[name] = f"{repository}:{tag}"
    return found
