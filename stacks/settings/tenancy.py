"""Queues, and the teams that share the cluster through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from components import catalogue, names
from components.catalogue import Artifact
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.bounds import Bounds
from components.tenancy.pod_policy import GRACE_SECONDS
from components.tenancy.promises import Promise
from stacks.errors import ConfigError, Path, key
from stacks.settings import members
from stacks.settings.jobs import JobsSettings
from stacks.settings.model import Bytes, Cores, SettingsModel, WholeQuantity, choice
from stacks.settings.names import SUBDOMAIN_LENGTH, is_subdomain
from stacks.settings.network import TeamNetworkSettings, TenancyNetworkSettings

_KUEUE = catalogue.versions(catalogue.KUEUE)
_JOB_SET = catalogue.versions(catalogue.JOB_SET)
_TRAINING = catalogue.versions(catalogue.TRAINING_OPERATOR)
_TRAINER = catalogue.versions(catalogue.TRAINER_KINDS[0])
_RAY = catalogue.versions(catalogue.RAY_ROLE)
_APPWRAPPER = catalogue.versions(catalogue.APPWRAPPER)
LARGEST_SHARE: Final = 1000
_EITHER: Final = "a team has either a quota of its own or a share of the nodes"
_ONE_OF: Final = "one of the keys quota and share"
_LEAST_DISK: Final = Quantity.parse("1Gi")


class QuotaSettings(SettingsModel):
    """Amounts of each resource. Every queue covers all of them, so a resource left out where it may be has 0 of it."""

    cpu: Cores = Field(alias=names.CPU)
    """CPU cores."""
    memory: Bytes = Field(alias=names.MEMORY)
    """Bytes of memory."""
    gpu: WholeQuantity = Field(alias=names.GPU)
    """GPUs."""
    shared_gpu: WholeQuantity = Field(alias=names.SHARED_GPU, default=ZERO)
    """Shares of GPUs, in place of whole ones where NVshare is on."""
    rdma: WholeQuantity = Field(alias=names.RDMA, default=ZERO)
    """RoCE devices."""
    infiniband: WholeQuantity = Field(alias=names.INFINIBAND, default=ZERO)
    """InfiniBand ports."""
    pods: WholeQuantity = Field(alias=names.PODS, default=Quantity.parse(100))
    """How many pods; the default is MLBatch's."""

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the quota by resource name."""
        return {
            names.CPU: self.cpu,
            names.MEMORY: self.memory,
            names.GPU: self.gpu + self.shared_gpu,
            names.RDMA: self.rdma,
            names.INFINIBAND: self.infiniband,
            names.PODS: self.pods,
        }


NOTHING: Final = QuotaSettings.model_construct(cpu=ZERO, memory=ZERO, gpu=ZERO, pods=ZERO)


class LimitSettings(SettingsModel):
    """Most of each resource; what is left out has no limit."""

    cpu: Cores | None = Field(alias=names.CPU, default=None)
    """Most CPU cores."""
    memory: Bytes | None = Field(alias=names.MEMORY, default=None)
    """Most bytes of memory."""
    gpu: WholeQuantity | None = Field(alias=names.GPU, default=None)
    """Most GPUs."""
    shared_gpu: WholeQuantity | None = Field(alias=names.SHARED_GPU, default=None)
    """Most shares of GPUs, where NVshare is on."""
    rdma: WholeQuantity | None = Field(alias=names.RDMA, default=None)
    """Most RoCE devices."""
    infiniband: WholeQuantity | None = Field(alias=names.INFINIBAND, default=None)
    """Most InfiniBand ports."""
    pods: WholeQuantity | None = Field(alias=names.PODS, default=None)
    """Most pods."""

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the limits by resource name."""
        limits = {
            names.CPU: self.cpu,
            names.MEMORY: self.memory,
            names.GPU: self.gpu if self.shared_gpu is None else self.shared_gpu,
            names.RDMA: self.rdma,
            names.INFINIBAND: self.infiniband,
            names.PODS: self.pods,
        }
        return {resource: limit for resource, limit in limits.items() if limit is not None}


class ReserveSettings(SettingsModel):
    """What each GPU node keeps for the pods of its DaemonSets: shares and the slack queue's default leave it out."""

    cpu: Cores | None = Field(alias=names.CPU, default=None)
    """CPU cores; default 2, of simulated nodes none. `kubectl describe node` shows what pods ask for."""
    memory: Bytes | None = Field(alias=names.MEMORY, default=None)
    """Bytes of memory; default 4Gi, of simulated nodes none."""

    def amounts(self) -> Mapping[str, Quantity]:
        """Return what is set, by resource name."""
        given = {names.CPU: self.cpu, names.MEMORY: self.memory}
        return {resource: amount for resource, amount in given.items() if amount is not None}


class TrainingOperatorSettings(SettingsModel):
    """Kubeflow's training operator, which makes the pods of PyTorchJobs."""

    enabled: bool = False
    """Install it; off where the cluster has one."""
    version: Annotated[str, choice("training operator version", _TRAINING)] = _TRAINING[0]
    """Version of the training operator."""


class JobSetSettings(SettingsModel):
    """JobSet, which makes the Jobs of JobSets."""

    enabled: bool = False
    """Install it; off where the cluster has one."""
    version: Annotated[str, choice("JobSet version", _JOB_SET)] = _JOB_SET[0]
    """Version of JobSet."""


class TrainerSettings(SettingsModel):
    """Kubeflow Trainer, which makes a JobSet of each TrainJob. It installs JobSet, too."""

    enabled: bool = False
    """Install it; off where the cluster has one."""
    version: Annotated[str, choice("Trainer version", _TRAINER)] = _TRAINER[0]
    """Version of Trainer."""


class KubeRaySettings(SettingsModel):
    """KubeRay, which makes the pods of RayClusters and RayJobs."""

    enabled: bool = False
    """Install it; off where the cluster has one."""
    version: Annotated[str, choice("KubeRay version", _RAY)] = _RAY[0]
    """Version of KubeRay."""


class QueueingSettings(SettingsModel):
    """The queues that lend to each other, and the operators behind them."""

    enabled: bool = True
    """Have queues. Without them there are no teams, and jobs are run by whoever comes first."""
    cohort: str = "default-cohort"
    """Name of the cohort, the queues that lend to each other."""
    slack: QuotaSettings | None = None
    """Quota of the slack queue; default one node's worth when there are several nodes, nothing otherwise."""
    node_reserve: ReserveSettings = ReserveSettings()
    count_pods: bool = True
    """Have queues cover how many pods there are, too, as MLBatch has them; otherwise what pods ask for alone counts."""
    open_to_all: bool = False
    """Let a team's queue take jobs of any namespace that has the label `mlbatch-team-namespace=true` and a LocalQueue
    to the queue, as MLBatch's queues do. Otherwise it takes jobs of the team's namespace only.
    """
    kueue_version: Annotated[str, choice("Kueue version", _KUEUE)] = _KUEUE[0]
    """Version of Kueue."""
    appwrapper_version: Annotated[str, choice("AppWrapper version", _APPWRAPPER)] = _APPWRAPPER[0]
    """Version of AppWrapper."""
    training_operator: TrainingOperatorSettings = TrainingOperatorSettings()
    kuberay: KubeRaySettings = KubeRaySettings()
    job_set: JobSetSettings = JobSetSettings()
    trainer: TrainerSettings = TrainerSettings()
    fair_sharing_half_life_minutes: Annotated[int, Field(ge=1, le=60 * 24 * 365)] = 7 * 24 * 60
    """After how many minutes the GPUs that a user has used count half, in teams with `userFairSharing`. The default is
    a week, as in Slurm (PriorityDecayHalfLife).
    """
    replicas: Annotated[int, Field(ge=1, le=3)] = 2
    """Number of pods of each operator, on different nodes where there are several. One leads; all answer the API
    server, so that jobs are submitted while a node is drained or lost. With 1 nobody can until it runs elsewhere.
    """

    @property
    def covered(self) -> Sequence[str]:
        """The resources that every queue has quotas of."""
        return [name for name in names.RESOURCES if self.count_pods or name != names.PODS]

    def artifacts(self) -> Sequence[Artifact]:
        """Return what the operators are installed from."""
        if not self.enabled:
            return ()
        wanted = [(catalogue.KUEUE, self.kueue_version), (catalogue.APPWRAPPER, self.appwrapper_version)]
        if self.job_set.enabled or self.trainer.enabled:
            wanted.append((catalogue.JOB_SET, self.job_set.version))
        if self.training_operator.enabled:
            wanted.append((catalogue.TRAINING_OPERATOR, self.training_operator.version))
        if self.trainer.enabled:
            wanted += [(name, self.trainer.version) for name in catalogue.TRAINER_KINDS]
        if self.kuberay.enabled:
            wanted += [(name, self.kuberay.version) for name in (*catalogue.RAY_KINDS, catalogue.RAY_ROLE)]
        return [catalogue.find(name, version) for name, version in wanted]

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the cohort's name to Kubernetes' rules."""
        if not is_subdomain(self.cohort):
            yield ConfigError(
                path=(*path, "cohort"),
                value=self.cohort,
                message="Kubernetes would reject this name",
                expected=f"at most {SUBDOMAIN_LENGTH} of a-z, 0-9, - and ., with a letter or digit first and last",
                hint="for example 'default-cohort'",
            )


class TenancySettings(SettingsModel):
    """The platform's own flavor, slack queue, role and teams on the queues."""

    enabled: bool = True
    """Have them; off where somebody else manages the queues: there are no teams then."""
    protect: bool = True
    """Namespaces of teams, with the claims that are in them, cannot be deleted: an update that would remove a team, and
    a destroy, are refused before they do anything. False lets them.
    """
    longest_grace_seconds: Annotated[int, Field(ge=30, le=3600)] = GRACE_SECONDS
    """Most seconds that a pod of a team may take to end (terminationGracePeriodSeconds): a job that borrows has as long
    to write a checkpoint, and the owner of the quota waits for as long.
    """
    read_secrets: bool = False
    """Let members read and change the Secrets of their namespace, as MLBatch's role does; otherwise they create and
    delete Secrets whose names they know. Pods of their jobs get what they name in either case.
    """
    exec: bool = False
    """Let members run commands in pods of their namespace (`kubectl exec`), as MLBatch's role does. What they do there
    stands in no job, and of the audit log in the command alone.
    """
    unwrapped_ray: bool = False
    """Let members create RayJobs and RayClusters outside of AppWrappers, as MLBatch's role does. KubeRay then says when
    such a job has ended, and its quota goes to others. RayJobs work well only so: AppWrapper does not see their end.
    """
    network: TenancyNetworkSettings = TenancyNetworkSettings()
    jobs: JobsSettings = JobsSettings()
    accept_unenforced: tuple[Annotated[str, choice("promise", tuple(str(promise) for promise in Promise))], ...] = ()
    """Promises to teams that may go without enforcement on a cluster that has no ValidatingAdmissionPolicy (Kubernetes
    before 1.30, or where it is off), by name. Without each of them such a cluster gets no teams.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the time after which pods are killed to the time that they may take to end by themselves."""
        killed, grace = self.jobs.forced_deletion_grace_seconds, key((*path, "longestGraceSeconds"))
        if killed < self.longest_grace_seconds:
            yield ConfigError(
                path=(*path, "jobs", "forcedDeletionGraceSeconds"),
                value=killed,
                message=f"pods have {self.longest_grace_seconds} seconds to end ({grace}), and would be killed before",
                expected=f"at least {self.longest_grace_seconds}",
                hint=f"raise it, or lower {grace}",
            )


class TeamServicesSettings(SettingsModel):
    """The Services that a team may have in its namespace."""

    total: Annotated[int, Field(ge=1, le=5000)] = Bounds.services
    """Most Services of all types; a job has one, or one for each of its pods."""
    load_balancers: Annotated[int, Field(ge=0, le=100)] = Bounds.load_balancers
    """Most Services that are reached from outside of the cluster through a load balancer of their own; each has to say
    from which addresses.
    """
    node_ports: bool = Bounds.node_ports
    """Let Services open ports of all nodes."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold load balancers to the number of all Services, which they are among."""
        if self.load_balancers > self.total:
            yield ConfigError(
                path=(*path, "loadBalancers"),
                value=self.load_balancers,
                message=f"load balancers are Services too, of which the team may have {self.total}",
                expected=f"a number from 0 to {self.total}",
                hint=f"lower it, or raise {key((*path, 'total'))}",
            )


class TeamStorageSettings(SettingsModel):
    """What a team may store: in volumes, those of workloads that the stack runs there among them, and on nodes."""

    claims: Annotated[int, Field(ge=0, le=5000)] = Bounds.claims
    """Most volumes (PersistentVolumeClaims)."""
    size: Bytes = Bounds.storage
    """Most bytes that they ask for together."""
    disk: Quantity = Bounds.disk
    """Most bytes of its node's disk that a container of a job fills, itself, its logs and emptyDir volumes, before the
    node ends its pod. A job that needs another amount names it, as ephemeral-storage in requests and limits.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Refuse a disk on which no container would run for long."""
        if self.disk < _LEAST_DISK:
            yield ConfigError(
                path=(*path, "disk"),
                value=str(self.disk),
                message="containers would be ended for their logs",
                expected=f"at least {_LEAST_DISK}",
                hint=f"leave it out for {Bounds.disk}",
            )


class TeamPoolSettings(SettingsModel):
    """What a team has of a node pool other than the first. It has either a quota or a share."""

    name: str
    """Name of the pool."""
    quota: QuotaSettings | None = None
    """The team's own amounts."""
    share: Annotated[int, Field(ge=1, le=LARGEST_SHARE)] | None = None
    """Its part, as against the shares of the other teams."""
    borrowing_limit: LimitSettings = LimitSettings()
    """Most that the team may borrow of this pool."""
    lending_limit: LimitSettings = LimitSettings()
    """Most of its quota that the team lends to others."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the team to one of quota and share."""
        if self.quota is not None and self.share is not None:
            yield _both(path)


class TeamSettings(SettingsModel):
    """A team: a namespace, a queue and its members. It has either a quota or a share."""

    name: str
    """Name of the team, which is its namespace's too."""
    users: tuple[str, ...] = ()
    """Names of its users as the cluster knows them."""
    groups: tuple[str, ...] = ()
    """Groups of users as the cluster's identity provider gives them, such as the object id of an Entra group: who joins
    or leaves one joins or leaves the team.
    """
    quota: QuotaSettings | None = None
    """The team's own amounts."""
    share: Annotated[int, Field(ge=1, le=LARGEST_SHARE)] | None = None
    """Its part of what the slack queue and the teams with quotas leave of the GPU nodes, as against the shares of the
    other teams: such a team's quota follows the number of nodes. Whole pieces are divided by largest remainder, among
    equals by the teams' names.
    """
    borrowing_limit: LimitSettings = LimitSettings()
    """Most that the team may borrow from others beyond its quota. With a Kueue before v0.19, all but GPUs have a
    limit by default, just below the part that the team's GPUs are of all GPUs: that Kueue holds what an owner borrows
    against it when the owner wants its GPUs back.
    """
    lending_limit: LimitSettings = LimitSettings()
    """Most of its quota that the team lends to others."""
    pools: tuple[TeamPoolSettings, ...] = ()
    """What the team has of node pools other than the first. Of a pool that is not listed, a team with a share has the
    same share, and a team with a quota has none and may borrow all that is idle.
    """
    user_fair_sharing: bool = False
    """Let the jobs of the user who has used the fewest GPUs lately go first, among jobs of the team that wait. Each of
    `users` gets a LocalQueue; members of `groups` share one. Use then goes before priority and age, no job preempts
    another one of the team, and smaller jobs pass one that does not fit. Restart Kueue after the update that changes
    it.
    """
    services: TeamServicesSettings = TeamServicesSettings()
    """Services in its namespace."""
    storage: TeamStorageSettings = TeamStorageSettings()
    """Volumes in its namespace, and files on nodes."""

    def bounds(self) -> Bounds:
        """Return what its namespace may hold of what no queue counts."""
        return Bounds(
            services=self.services.total,
            load_balancers=self.services.load_balancers,
            node_ports=self.services.node_ports,
            claims=self.storage.claims,
            storage=self.storage.size,
            disk=self.storage.disk,
        )

    network: TeamNetworkSettings = TeamNetworkSettings()

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold members to Kubernetes' rules, and the team to one of quota and share; names are held apart together."""
        if not {"users", "groups"} & self.model_fields_set:
            yield ConfigError(
                path=(*path, "users"),
                message="nothing says who is in the team",
                expected="a list of users or groups, which may be empty",
                hint="add users, such as [alice], or groups, or users: [] for nobody yet",
            )
        yield from members.check((*path, "users"), self.users, members.USER)
        yield from members.check((*path, "groups"), self.groups, members.GROUP)
        if self.user_fair_sharing and not self.users:
            yield ConfigError(
                path=(*path, "userFairSharing"),
                value=True,
                message="use is counted for users who are listed by name, and the team lists none",
                expected="false, or a list of users",
                hint=f"remove the key, or list the users in {key((*path, 'users'))}",
            )
        if self.quota is not None and self.share is not None:
            yield _both(path)
        elif self.quota is None and self.share is None:
            yield ConfigError(
                path=path,
                message=f"{_EITHER}, and this one has neither",
                expected=_ONE_OF,
                hint="add share: 1, or a quota",
            )

    def of_pool(self, name: str) -> TeamSettings:
        """Return the team with what it has of a pool other than the first in the place of what it has of the first."""
        given = next((pool for pool in self.pools if pool.name == name), None) or TeamPoolSettings(name=name)
        share = given.share or (self.share if given.quota is None else None)
        quota = given.quota or (NOTHING if share is None else None)
        limits = {"borrowing_limit": given.borrowing_limit, "lending_limit": given.lending_limit}
        return self.model_copy(update={"quota": quota, "share": share, **limits})


def _both(path: Path) -> ConfigError:
    return ConfigError(
        path=path, message=f"{_EITHER}, and this one has both", expected=_ONE_OF, hint="remove one of the two"
    )
