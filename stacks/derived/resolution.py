"""Values derived from a stack's settings, once, after the checks, for composition and outputs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from components import names
from components.health.thresholds import Threshold
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import NodeGroup, union
from components.queueing.running_kueue import RunningKueue
from stacks.derived.partial import PartialSettings
from stacks.derived.quotas import Division
from stacks.settings.health import HealthSettings
from stacks.settings.workloads import JobSettings, ViewerSettings, WorkloadsSettings
from stacks.validation import isolation


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What follows from the settings.

    divisions: what queues have of each pool of GPU nodes, with the GPUs that pods may ask for. gpu_resource: as which
    they ask.
    has_admission_policies: the cluster supports them. unenforced: promises to teams that the cluster cannot enforce.
    nodes_at_first: how many GPU nodes there are before an autoscaler changes that.
    volumes: claims that workloads may mount, by name, with their namespaces.
    images: of the workloads, by their key, if set. gate_image: of the check of a single node.
    threshold: of the all-reduce that the NCCL gate runs, None without a threshold.
    scheduler_version: of scheduler-plugins.
    running_kueue: the Kueue that the stack uses and does not install from upstream's manifest.
    brings: operators of jobs that the target's own layers install.
    installs_operators: Kueue, AppWrapper and the operators of jobs come from upstream's manifests.
    """

    divisions: Sequence[Division]
    gpu_resource: str
    has_admission_policies: bool
    unenforced: Sequence[str]
    nodes_at_first: int
    volumes: Mapping[str, str]
    images: Mapping[str, str]
    gate_image: str | None
    threshold: Threshold | None
    scheduler_version: str
    installs_operators: bool
    running_kueue: RunningKueue | None = None
    brings: Collection[str] = ()

    @property
    def kueue_api(self) -> str:
        """The API version of Kueue's objects that the cluster's Kueue stores."""
        return self.running_kueue.api if self.running_kueue is not None else names.KUEUE_API

    @property
    def pool(self) -> NodePool:
        """The first pool, which runs the stack's own checks and jobs."""
        return self.divisions[0].pool

    @property
    def fabric(self) -> Fabric:
        """What a pod that takes a whole node of the first pool asks of the network."""
        return self.divisions[0].fabric

    @property
    def pools(self) -> Sequence[NodePool]:
        """All pools, in the order that queues use."""
        return [division.pool for division in self.divisions]

    @property
    def gpu_nodes(self) -> NodeGroup:
        """Where pods go that run on the nodes of all pools."""
        return union([pool.nodes for pool in self.pools])


def resolve(partial: PartialSettings) -> Resolved | None:
    """Return the derived values, or None if a section that they need is invalid."""
    if partial.target is None or partial.pool is None or partial.fabric is None or partial.slack is None:
        return None
    health = partial.section(HealthSettings)
    return Resolved(
        divisions=[_division(each) for each in partial.every_pool],
        gpu_resource=partial.gpu_resource,
        has_admission_policies=partial.has_admission_policies is not False,
        unenforced=isolation.unenforced(partial),
        nodes_at_first=partial.target.nodes_at_first(partial, partial.pool),
        volumes=partial.target.volumes(partial) or {},
        images=images(partial.section(WorkloadsSettings), partial.target.registry(partial)),
        gate_image=partial.target.node_check_image(partial),
        threshold=health.nccl_gate.threshold(partial.pool) if health is not None else None,
        scheduler_version=partial.scheduler_version,
        installs_operators=partial.target.installs_operators(partial),
        running_kueue=partial.running_kueue,
        brings=partial.target.brings(partial),
    )


def _division(partial: PartialSettings) -> Division:
    pool, fabric, slack = partial.pool, partial.fabric, partial.slack
    if pool is None or fabric is None or slack is None:
        raise LookupError(f"node pool {partial.which} is not known")
    return Division(
        pool=pool,
        fabric=fabric,
        slack=slack,
        quotas=partial.quotas,
        borrowing_limits=partial.borrowing_limits,
        lending_limits={team.name: team.lending_limit.amounts() for team in partial.known_teams},
    )


def images(workloads: WorkloadsSettings | None, registry: str | None) -> Mapping[str, str]:
    """Return the images of jobs and viewers by key: their own, else the registry's of the name that the site pushes.

    A viewer without an image runs that of the training, which has the viewers too.
    """
    if workloads is None:
        return {}
    found = {}
    for name, job in workloads.of(JobSettings).items():
        repository = job.image or (f"{registry}/{job.repository}" if registry is not None else None)
        if repository is not None and job.tag is not None:
            found[name] = f"{repository}:{job.tag}"
    training = workloads.metaseq
    own = training.image or (f"{registry}/{training.repository}" if registry is not None else None)
    for name, viewer in workloads.of(ViewerSettings).items():
        repository, tag = viewer.image or own, viewer.tag or training.tag
        if repository is not None and tag is not None:
            found[name] = f"{repository}:{tag}"
    return found
