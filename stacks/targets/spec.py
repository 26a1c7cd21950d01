"""What a target is to everything that works with any of them: one value that answers all questions about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from components import names
from components.kubernetes.quantity import Quantity
from components.kubernetes.security import PodSecurity
from components.kubernetes.volumes import AccessMode
from components.tenancy.callers import Gatekeepers
from components.tenancy.quota import Quota
from stacks.config.errors import ConfigError, Path
from stacks.settings import PlatformSettings
from stacks.settings.tenancy import QueueingSettings

if TYPE_CHECKING:
    from components.kubernetes.fabric import Fabric
    from components.kubernetes.node_pool import NodePool
    from stacks.config.inputs import StackInputs
    from stacks.derived.partial import PartialSettings
    from stacks.layers.releases import Releases
    from stacks.settings.pools import FurtherPoolSettings

S = TypeVar("S", bound=PlatformSettings)

RESERVED: Final = {names.CPU: Quantity.parse(2), names.MEMORY: Quantity.parse("4Gi")}
"""What the pods of DaemonSets ask for of a GPU node, where the settings do not say. The platform's agents ask for a
tenth of it at most, and upstream's charts give most of their pods no requests. The rest is for the cluster's own pods,
of network, storage and logs, which nobody adds up for all clusters."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim that the stack makes. path: of the setting that says its size in bytes."""

    path: Path
    namespace: str
    size: Quantity


PLATFORM: Final[Path] = ()
"""Stands for the path of a name that no setting gives."""


@dataclass(frozen=True)
class Planned:
    """An object that the stack makes, or that is there for it. path: of the setting that names it, or PLATFORM."""

    kind: str
    namespace: str
    name: str
    path: Path

    @property
    def identity(self) -> tuple[str, str, str]:
        """What no other object has."""
        return self.kind, self.namespace, self.name


class UnansweredError(Exception):
    """The cloud in which a target makes its own could not be asked; problem says why, and what to do."""

    def __init__(self, problem: ConfigError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class TargetSpec(ABC, Generic[S]):
    """A place where the platform lands.

    name: as `mlbatch:target` has it. summary: one line for the documentation.
    settings: the whole tree of its configuration, of which a section without a default is required.
    sections: the keys of the tree that mean something on it, in the order of the documentation; others are refused.
    secrets: the keys of its secrets, beside those that every target has.
    count_key: of the number of its GPU nodes. pools_key: of the list of pools behind the first.
    registry_key: of the registry of the site's own images, where
        it has workloads.
    namespaces: prefixes of those that the cluster has itself.
    version_path: of its Kubernetes version, where a setting says it. kubernetes_versions: those that it can have, none
        where that is not listed.
    reserved: of each GPU node for the pods of its DaemonSets, unless the settings say otherwise.
    has_kubeconfig: it installs on a cluster that a kubeconfig names; otherwise it makes its own.
    cluster_env: which of metaseq's own clusters its clusters are like, None for none.
    pod_security: what judges the pods of its clusters.
    certifies_operators: operators are certified for its own releases, whatever their makers say of Kubernetes'.
    has_projects: whoever signs in makes namespaces, as their administrator.
    shared_access: how volumes are mounted that several pods write to.
    is_one_node: its cluster is one node, whatever the settings say.
    has_load_balancers: Services of type LoadBalancer get an address.
    has_volumes: claims with data can be named, for workloads to mount them.
    gpu_advice: how to have nodes with GPUs, for a fix.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    settings: type[S]
    sections: ClassVar[tuple[str, ...]]
    secrets: ClassVar[tuple[str, ...]] = ()
    count_key: ClassVar[Path]
    pools_key: ClassVar[Path] = ()
    registry_key: ClassVar[Path] = ()
    namespaces: ClassVar[tuple[str, ...]] = ()
    version_path: ClassVar[Path] = ()
    kubernetes_versions: ClassVar[tuple[str, ...]] = ()
    reserved: ClassVar[Mapping[str, Quantity]] = RESERVED
    has_kubeconfig: ClassVar[bool] = False
    cluster_env: ClassVar[str | None] = None
    pod_security: ClassVar[PodSecurity] = PodSecurity.STANDARDS
    certifies_operators: ClassVar[bool] = False
    has_projects: ClassVar[bool] = False
    shared_access: ClassVar[AccessMode] = AccessMode.MANY_NODES
    is_one_node: ClassVar[bool] = False
    has_load_balancers: ClassVar[bool] = True
    has_volumes: ClassVar[bool] = True
    gpu_advice: ClassVar[str] = "choose nodes with GPUs"

    @abstractmethod
    def pools(self, partial: PartialSettings) -> Sequence[NodePool]:
        """Return its GPU nodes as they are, in the order in which queues try them.

        There are none while the sections that describe them could not be read.
        """

    def further(self, partial: PartialSettings) -> Sequence[FurtherPoolSettings]:
        """Return the settings of the pools behind the first."""
        return ()

    @abstractmethod
    def fabric(self, partial: PartialSettings, pool: NodePool) -> Fabric:
        """Return what a pod that takes a whole node asks of the network between the nodes."""

    def nodes_at_first(self, partial: PartialSettings, pool: NodePool) -> int:
        """Return how many GPU nodes there are when the stack is created, of a pool that may grow."""
        return pool.count

    def shared_files(self, settings: S) -> str | None:
        """Return the storage class of volumes that many nodes mount, None for the cluster's default."""
        return None

    def kubernetes_version(self, partial: PartialSettings) -> str | None:
        """Return the cluster's version, such as 1.35 or 1.35.6, None while nobody knows it."""
        return None

    def offers_ports(self, partial: PartialSettings) -> bool:
        """Return whether its nodes offer InfiniBand ports one by one, which quotas count."""
        pool = partial.pool
        return pool is not None and pool.shape.resources[names.INFINIBAND].nano > 0

    def registry(self, partial: PartialSettings) -> str | None:
        """Return where the site's own images are pulled from, None where nothing says."""
        return None

    def node_check_image(self, partial: PartialSettings) -> str | None:
        """Return the image that tests a single node, None for that of the NCCL test."""
        return None

    def volumes(self, partial: PartialSettings) -> Mapping[str, str] | None:
        """Return the claims that workloads may mount by name, with their namespaces; None while nobody knows them."""
        return {}

    def claims(self, partial: PartialSettings) -> Iterable[Claim]:
        """Return the claims that it makes itself, as far as they are known."""
        return ()

    def planned(self, partial: PartialSettings) -> Iterable[Planned]:
        """Return the objects of its own that its settings name."""
        return ()

    def namespaces_made(self, partial: PartialSettings) -> Iterable[str]:
        """Return the namespaces of what it alone has, which are no team's."""
        return ()

    def projects(self, settings: S) -> Iterable[str]:
        """Return the namespaces that it makes for people beside the teams, with queues of their own."""
        return ()

    def queues(self, partial: PartialSettings) -> Mapping[str, Quota]:
        """Return the quotas of queues of its own, beside the slack queue and the teams', by section."""
        return {}

    def node_selectors(self, partial: PartialSettings) -> Sequence[Mapping[str, str]]:
        """Return the labels of the pools whose nodes are looked up, as the settings do not say it all."""
        return ()

    def ask(self, partial: PartialSettings, environment: Mapping[str, str]) -> object:
        """Return what the cloud says of itself in which it makes its own, None where nobody needs to be asked.

        environment: variables with credentials. Raises UnansweredError, after which a preview shows what it can.
        """
        return None

    def installs_operators(self, partial: PartialSettings) -> bool:
        """Return whether Kueue, AppWrapper and the operators of jobs are installed from upstream's manifests.

        Otherwise its own layers register them (stacks/layers/site.py, operators).
        """
        return True

    def gatekeepers(self, settings: S) -> Gatekeepers:
        """Return the accounts by which Kueue and AppWrapper start jobs."""
        return Gatekeepers()

    def kueue_version(self, partial: PartialSettings) -> str | None:
        """Return the version of the Kueue that runs, None while the settings could not be read."""
        queueing = partial.section(QueueingSettings)
        return queueing.kueue_version if queueing is not None else None

    def kueue_api(self, settings: S) -> str:
        """Return the API version of Kueue's objects that the Kueue that runs stores."""
        return names.KUEUE_API

    def check(self, partial: PartialSettings) -> Iterator[ConfigError]:
        """Yield what is wrong between its own sections and others."""
        return iter(())

    def warnings(self, partial: PartialSettings) -> Iterable[str]:
        """Return what is allowed on it and most likely not meant, in words for the reader of a run."""
        return ()

    @abstractmethod
    def deploy(self, inputs: StackInputs[S], releases: Releases) -> Mapping[str, Any]:
        """Register the platform on it and return the stack's outputs. Loads the target's SDKs."""
