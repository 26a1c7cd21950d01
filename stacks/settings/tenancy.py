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
from components.tenancy.quota import StopPolicy
from stacks.config.errors import MISSING, ConfigError, Path, key
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
_EITHER: Final = "a team needs either a quota or a share"
_ONE_OF: Final = "one of the keys quota and share"
_LEAST_DISK: Final = Quantity.parse("1Gi")


class AmountsSettings(SettingsModel):
    """Amounts of resources."""

    def amounts(self) -> Mapping[str, Quantity]:
        """Return what is set by resource name. GPU shares count as GPUs."""
        found = {info.alias or name: getattr(self, name) for name, info in type(self).model_fields.items()}
        shares = found.pop(names.SHARED_GPU, None)
        if shares is not None:
            found[names.GPU] = shares + (found[names.GPU] or ZERO)
        return {resource: amount for resource, amount in found.items() if amount is not None}


class QuotaSettings(AmountsSettings):
    """Amounts of each resource. Every queue covers all resources, and an omitted resource has its default."""

    cpu: Cores = Field(alias=names.CPU)
    """CPU cores."""
    memory: Bytes = Field(alias=names.MEMORY)
    """Memory in bytes."""
    gpu: WholeQuantity = Field(alias=names.GPU)
    """GPUs."""
    shared_gpu: WholeQuantity = Field(alias=names.SHARED_GPU, default=ZERO)
    """GPU shares, in place of GPUs if NVshare is on."""
    rdma: WholeQuantity = Field(alias=names.RDMA, default=ZERO)
    """RoCE devices."""
    infiniband: WholeQuantity = Field(alias=names.INFINIBAND, default=ZERO)
    """InfiniBand ports."""
    pods: WholeQuantity = Field(alias=names.PODS, default=Quantity.parse(100))
    """Number of pods. Default: MLBatch's."""


NOTHING: Final = QuotaSettings.model_construct(cpu=ZERO, memory=ZERO, gpu=ZERO, pods=ZERO)


class LimitSettings(AmountsSettings):
    """Maximum of each resource. An omitted resource has no limit."""

    cpu: Cores | None = Field(alias=names.CPU, default=None)
    """CPU cores."""
    memory: Bytes | None = Field(alias=names.MEMORY, default=None)
    """Memory in bytes."""
    gpu: WholeQuantity | None = Field(alias=names.GPU, default=None)
    """GPUs."""
    shared_gpu: WholeQuantity | None = Field(alias=names.SHARED_GPU, default=None)
    """GPU shares, in place of GPUs if NVshare is on."""
    rdma: WholeQuantity | None = Field(alias=names.RDMA, default=None)
    """RoCE devices."""
    infiniband: WholeQuantity | None = Field(alias=names.INFINIBAND, default=None)
    """InfiniBand ports."""
    pods: WholeQuantity | None = Field(alias=names.PODS, default=None)
    """Number of pods."""


class ReserveSettings(AmountsSettings):
    """Resources of each GPU node for its DaemonSets. Shares and the slack queue's default leave them out."""

    cpu: Cores | None = Field(alias=names.CPU, default=None)
    """CPU cores. Default: 2, or none on simulated nodes. `kubectl describe node` shows the requests of pods."""
    memory: Bytes | None = Field(alias=names.MEMORY, default=None)
    """Memory in bytes. Default: 4Gi, or none on simulated nodes."""


class TrainingOperatorSettings(SettingsModel):
    """Kubeflow's training operator, which runs PyTorchJobs."""

    enabled: bool = False
    """Install it, unless the cluster has one."""
    version: Annotated[str, choice("training operator version", _TRAINING)] = _TRAINING[0]
    """Version of the training operator."""


class JobSetSettings(SettingsModel):
    """JobSet, which runs JobSets."""

    enabled: bool = False
    """Install it, unless the cluster has one."""
    version: Annotated[str, choice("JobSet version", _JOB_SET)] = _JOB_SET[0]
    """Version of JobSet."""


class TrainerSettings(SettingsModel):
    """Kubeflow Trainer, which creates a JobSet for each TrainJob. It also installs JobSet."""

    enabled: bool = False
    """Install it, unless the cluster has one."""
    version: Annotated[str, choice("Trainer version", _TRAINER)] = _TRAINER[0]
    """Version of Trainer."""


class KubeRaySettings(SettingsModel):
    """KubeRay, which runs RayClusters and RayJobs."""

    enabled: bool = False
    """Install it, unless the cluster has one."""
    version: Annotated[str, choice("KubeRay version", _RAY)] = _RAY[0]
    """Version of KubeRay."""


class QueueingSettings(SettingsModel):
    """Queues that lend quota to each other, and the operators that run their jobs."""

    enabled: bool = True
    """Install the queues. Without them the stack has no teams, and jobs run first come, first served."""
    cohort: str = "default-cohort"
    """Name of the cohort. Its queues lend quota to each other."""
    slack: QuotaSettings | None = None
    """Quota of the slack queue. Default: one node's resources if there are several nodes, otherwise none."""
    node_reserve: ReserveSettings = ReserveSettings()
    count_pods: bool = True
    """Let quotas also limit the number of pods, like MLBatch. If false, they count only requested resources."""
    open_to_all: bool = False
    """Let a team's queue admit jobs from each namespace that has the label `mlbatch-team-namespace=true` and a
    LocalQueue for it, like MLBatch. If false, it admits jobs from the team's namespace only.
    """
    stop_policy: StopPolicy = StopPolicy.NONE
    """Stop the teams' queues, for maintenance. `Hold`: queues start no jobs, running jobs continue. `HoldAndDrain`:
    queues also suspend running jobs, each as a whole. These wait and start again with `None`.
    """
    adopt: bool = False
    """Use the Kueue that the cluster already has, and install none. The stack creates queues, teams and policies for
    it, and does not change its configuration.
    """
    kueue_version: Annotated[str, choice("Kueue version", _KUEUE)] = _KUEUE[0]
    """Version of Kueue. v0.18 rejects several node pools and `userFairSharing`."""
    appwrapper_version: Annotated[str, choice("AppWrapper version", _APPWRAPPER)] = _APPWRAPPER[0]
    """Version of AppWrapper."""
    training_operator: TrainingOperatorSettings = TrainingOperatorSettings()
    kuberay: KubeRaySettings = KubeRaySettings()
    job_set: JobSetSettings = JobSetSettings()
    trainer: TrainerSettings = TrainerSettings()
    fair_sharing_half_life_minutes: Annotated[int, Field(ge=1, le=60 * 24 * 365)] = 7 * 24 * 60
    """Half-life, in minutes, of the GPU use that `userFairSharing` compares. Default: a week, as in Slurm
    (PriorityDecayHalfLife).
    """
    replicas: Annotated[int, Field(ge=1, le=3)] = 2
    """Number of pods of each operator, on different nodes if possible. One leads, and all serve webhooks, so that users
    can submit jobs while a node is drained or lost. With 1, submission fails until the pod runs on another node.
    """

    @property
    def covered(self) -> Sequence[str]:
        """The resources that every queue has quotas of."""
        return [name for name in names.RESOURCES if self.count_pods or name != names.PODS]

    def artifacts(self, *, kueue: bool = True) -> Sequence[Artifact]:
        """Return what the operators are installed from. kueue: the stack installs Kueue itself."""
        if not self.enabled:
            return ()
        wanted = [(catalogue.APPWRAPPER, self.appwrapper_version)]
        if kueue:
            wanted.insert(0, (catalogue.KUEUE, self.kueue_version))
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
        if not is_subdomain(self.cohort):
            yield ConfigError(
                (*path, "cohort"),
                "Kubernetes would reject this name",
                "for example 'default-cohort'",
                expected=f"at most {SUBDOMAIN_LENGTH} of a-z, 0-9, - and ., with a letter or digit first and last",
            )


class TenancySettings(SettingsModel):
    """The teams, and the platform's flavor, slack queue and role."""

    enabled: bool = True
    """Create them. Set to false if another tool manages the queues. The stack then has no teams."""
    protect: bool = True
    """Refuse updates that remove a team or the workbench, and `pulumi destroy`, before they change anything. This
    protects teams' namespaces and their claims, and the claims of the workbench. To remove one, first apply `false`.
    """
    longest_grace_seconds: Annotated[int, Field(ge=30, le=3600)] = GRACE_SECONDS
    """Maximum terminationGracePeriodSeconds of teams' pods. An evicted job has this many seconds to write a checkpoint,
    and the owner of the quota waits as long.
    """
    read_secrets: bool = False
    """Let members read and change all Secrets in their namespace, like MLBatch. If false, they can only create Secrets,
    and delete those that they can name. Their jobs can use Secrets in both cases.
    """
    exec: bool = False
    """Let members run commands in pods of their namespace (`kubectl exec`), like MLBatch. The audit log then contains
    the command, but not what happens inside it.
    """
    unwrapped_ray: bool = False
    """Let members create RayJobs and RayClusters without an AppWrapper, like MLBatch. A RayJob then frees its quota
    when it ends. AppWrapper does not see that a RayJob has ended.
    """
    network: TenancyNetworkSettings = TenancyNetworkSettings()
    jobs: JobsSettings = JobsSettings()
    accept_unenforced: tuple[Annotated[str, choice("promise", tuple(str(promise) for promise in Promise))], ...] = ()
    """Promises to teams that the cluster cannot enforce because it has no ValidatingAdmissionPolicy (before Kubernetes
    1.30, or switched off). On such a cluster, teams are refused unless all these promises are listed.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        killed, grace = self.jobs.forced_deletion_grace_seconds, key((*path, "longestGraceSeconds"))
        if killed < self.longest_grace_seconds:
            yield ConfigError(
                (*path, "jobs", "forcedDeletionGraceSeconds"),
                f"pods have {self.longest_grace_seconds} seconds to end ({grace}) and would be killed earlier",
                f"raise it, or lower {grace}",
            )


class TeamServicesSettings(SettingsModel):
    """Limits for Services in the team's namespace."""

    total: Annotated[int, Field(ge=1, le=5000)] = Bounds.services
    """Maximum number of Services of all types. A job has one Service, or one for each pod. From this number on, only
    TrainJobs get more."""
    load_balancers: Annotated[int, Field(ge=0, le=100)] = Bounds.load_balancers
    """Maximum number of Services of type LoadBalancer. Each must list its allowed source addresses."""
    node_ports: bool = Bounds.node_ports
    """Allow Services that open ports on all nodes."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.load_balancers > self.total:
            yield ConfigError(
                (*path, "loadBalancers"),
                f"load balancers count as Services, and the team may have {self.total} Services",
                f"lower it, or raise {key((*path, 'total'))}",
            )


class TeamStorageSettings(SettingsModel):
    """Storage limits of a team. They include the volumes of the stack's workloads in its namespace."""

    claims: Annotated[int, Field(ge=0, le=5000)] = Bounds.claims
    """Maximum number of PersistentVolumeClaims."""
    size: Bytes = Bounds.storage
    """Maximum of all requested storage together, in bytes."""
    disk: Quantity = Bounds.disk
    """Maximum bytes of node disk for a container, its logs and its emptyDir volumes. The node evicts a pod that uses
    more. A job can set another amount as ephemeral-storage in requests and limits.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.disk < _LEAST_DISK:
            yield ConfigError(
                (*path, "disk"),
                "this is too small: logs alone would get containers evicted",
                f"remove the key; the default is {Bounds.disk}",
                expected=f"at least {_LEAST_DISK}",
            )


class TeamPoolSettings(SettingsModel):
    """The team's part of a further node pool: a quota or a share, not both."""

    name: str
    """Name of the pool."""
    quota: QuotaSettings | None = None
    """Fixed amounts."""
    share: Annotated[int, Field(ge=1, le=LARGEST_SHARE)] | None = None
    """Weight among teams with shares."""
    borrowing_limit: LimitSettings = LimitSettings()
    """Maximum that the team can borrow in this pool."""
    lending_limit: LimitSettings = LimitSettings()
    """Maximum that the team lends of its quota."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.quota is not None and self.share is not None:
            yield _both(path)


class TeamSettings(SettingsModel):
    """A team: a namespace, a queue and its members. Set either a quota or a share."""

    name: str
    """Name of the team and of its namespace."""
    users: tuple[str, ...] = ()
    """User names as the cluster's authentication reports them."""
    groups: tuple[str, ...] = ()
    """Groups from the cluster's identity provider, such as the object ID of an Entra group. The members of the group
    are members of the team.
    """
    quota: QuotaSettings | None = None
    """Fixed amounts."""
    share: Annotated[int, Field(ge=1, le=LARGEST_SHARE)] | None = None
    """Weight among teams with shares, which divide the GPU nodes that the slack queue and fixed quotas leave. The quota
    follows the number of nodes. Units are rounded by largest remainder, ties by team name.
    """
    borrowing_limit: LimitSettings = LimitSettings()
    """Maximum that the team can borrow beyond its quota in the first pool. With a Kueue before v0.19, all resources
    except GPUs have a default limit slightly below the team's fraction of all GPUs, because those versions can
    otherwise fail to return lent GPUs to a team that borrows other resources.
    """
    lending_limit: LimitSettings = LimitSettings()
    """Maximum that the team lends of its quota of the first pool."""
    pools: tuple[TeamPoolSettings, ...] = ()
    """The team's part of further node pools. In a pool that is not listed, a team with a share has the same share. A
    team with a quota has none there and can only borrow.
    """
    user_fair_sharing: bool = False
    """Start pending jobs of the user with the least recent GPU use first. Each of `users` gets a LocalQueue, and
    members of `groups` share one. Use counts before priority and age, jobs of the team do not preempt each other, and
    smaller jobs overtake one that does not fit. After you change this, restart Kueue.
    """
    services: TeamServicesSettings = TeamServicesSettings()
    """Limits for Services in its namespace."""
    storage: TeamStorageSettings = TeamStorageSettings()
    """Limits for volumes in its namespace and for files on nodes."""

    def bounds(self) -> Bounds:
        """Return the limits of its namespace for resources that queues do not count."""
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
        """Check members' names, and require either a quota or a share. Names are checked with all teams."""
        if not {"users", "groups"} & self.model_fields_set:
            yield ConfigError(
                (*path, "users"),
                "the team has no users and no groups",
                f"set it to a list such as [alice], or set {key((*path, 'groups'))}; for an empty team, set this to []",
            )
        yield from members.check((*path, "users"), self.users, members.USER)
        yield from members.check((*path, "groups"), self.groups, members.GROUP)
        if self.user_fair_sharing and not self.users:
            yield ConfigError(
                (*path, "userFairSharing"),
                "this counts the usage of listed users, and the team lists none",
                f"remove the key, or list the users in {key((*path, 'users'))}",
            )
        if self.quota is not None and self.share is not None:
            yield _both(path)
        elif self.quota is None and self.share is None:
            yield ConfigError(
                path,
                f"{_EITHER}, and this team has neither",
                f"set {key((*path, 'share'))} to 1, or set {key((*path, 'quota'))}",
                value=MISSING,
            )

    def of_pool(self, name: str) -> TeamSettings:
        """Return the team with its quota, share and limits of another pool in place of those of the first."""
        given = next((pool for pool in self.pools if pool.name == name), None) or TeamPoolSettings(name=name)
        share = given.share or (self.share if given.quota is None else None)
        quota = given.quota or (NOTHING if share is None else None)
        limits = {"borrowing_limit": given.borrowing_limit, "lending_limit": given.lending_limit}
        return self.model_copy(update={"quota": quota, "share": share, **limits})


def _both(path: Path) -> ConfigError:
    return ConfigError(
        path,
        f"{_EITHER}, and this team has both",
        f"remove {key((*path, 'quota'))} or {key((*path, 'share'))}",
        value=MISSING,
    )
