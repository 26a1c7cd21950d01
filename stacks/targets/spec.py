"""What every target says about itself: data, and functions of the sections that could be read."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from components import names
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.kubernetes.security import PodSecurity
from components.kubernetes.volumes import AccessMode
from components.queueing.running_kueue import RunningKueue
from components.tenancy.callers import Gatekeepers
from components.tenancy.quota import Quota
from stacks.config.errors import ConfigError, Path
from stacks.config.sections import Sections
from stacks.settings import PlatformSettings
from stacks.settings.model import SettingsModel
from stacks.settings.pools import FurtherPoolSettings
from stacks.settings.tenancy import QueueingSettings

S = TypeVar("S", bound=PlatformSettings)
M = TypeVar("M", bound=SettingsModel)
V = TypeVar("V")

RESERVED: Final = {names.CPU: Quantity.parse(2), names.MEMORY: Quantity.parse("4Gi")}
"""Default of what the pods of DaemonSets request of a GPU node. The platform's agents request at most a tenth of it,
and upstream's charts give most of their pods no requests. The rest is for the cluster's own pods, such as
network, storage and logs.
"""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim of the stack. path: of the setting with its size in bytes."""

    path: Path
    namespace: str
    size: Quantity


PLATFORM: Final[Path] = ()
"""Path of a name that does not come from a setting."""


@dataclass(frozen=True)
class Planned:
    """An object that the stack creates or uses. path: of the setting that names it, or PLATFORM."""

    kind: str
    namespace: str
    name: str
    path: Path

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.kind, self.namespace, self.name


def shared_sections(*left_out: str) -> tuple[str, ...]:
    """Return the sections that targets share, except some. Each target adds `kubernetes` and its own."""
    return tuple(name for name in PlatformSettings.model_fields if name not in ("target", "kubernetes", *left_out))


def from_section(model: type[M], value: Callable[[M], V], unknown: V) -> Callable[[Sections], V]:
    """Return a function that computes a value from a section. unknown: the value if the section could not be read."""

    def read(sections: Sections) -> V:
        section = sections.section(model)
        return value(section) if section is not None else unknown

    return read


class UnansweredError(Exception):
    """The cloud of a target did not answer. problem: the reason and the fix."""

    def __init__(self, problem: ConfigError) -> None:
        super().__init__(str(problem))
        self.problem = problem


def adopted(sections: Sections) -> RunningKueue | None:
    """Return the cluster's own Kueue if the settings adopt it."""
    queueing = sections.section(QueueingSettings)
    found = sections.facts.kueue if sections.facts is not None else None
    if queueing is None or not queueing.enabled or not queueing.adopt or found is None:
        return None
    return found.running()


@dataclass(frozen=True, kw_only=True)
class TargetSpec(Generic[S]):
    """A place where the platform lands.

    Each function takes the sections that could be read, or the complete settings. What else belongs to a target is in
    its folder: rules between sections (`rules.py`) and its resources (`deploy.py`).

    name: as `mlbatch:target` has it.
    summary: one line for the documentation.
    settings: the whole tree of its configuration. A section without a default is required.
    sections: the keys of the tree that apply to it, in the order of the documentation. Others are refused.
    secrets: the keys of its secrets, in addition to those of every target.
    count_key: of the number of its GPU nodes.
    pools_key: of the list of further pools.
    registry_key: of the registry of the site's own images, if it has workloads.
    namespaces: prefixes of namespaces that the cluster itself has.
    version_path: of its Kubernetes version, if a setting gives it.
    kubernetes_versions: those that it can have. Empty if they are not listed.
    reserved: of each GPU node for the pods of its DaemonSets, unless the settings say otherwise.
    has_kubeconfig: it installs on a cluster that a kubeconfig names. Otherwise it makes its own.
    cluster_env: which of metaseq's own clusters its clusters are like.
    pod_security: what judges the pods of its clusters.
    certifies_operators: operators are certified for its own releases instead of Kubernetes'.
    has_projects: users create namespaces and are their administrators.
    shared_access: how volumes are mounted that several pods write to.
    is_one_node: its cluster always has one node.
    has_load_balancers: Services of type LoadBalancer get an address.
    has_volumes: workloads can mount named claims with data.
    gpu_advice: how to get nodes with GPUs, for the fix of an error.
    """

    name: str
    summary: str
    settings: type[S]
    sections: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    count_key: Path
    pools_key: Path = ()
    registry_key: Path = ()
    namespaces: tuple[str, ...] = ()
    version_path: Path = ()
    kubernetes_versions: tuple[str, ...] = ()
    reserved: Mapping[str, Quantity] = field(default_factory=lambda: RESERVED)
    has_kubeconfig: bool = False
    cluster_env: str | None = None
    pod_security: PodSecurity = PodSecurity.STANDARDS
    certifies_operators: bool = False
    has_projects: bool = False
    shared_access: AccessMode = AccessMode.MANY_NODES
    is_one_node: bool = False
    has_load_balancers: bool = True
    has_volumes: bool = True
    gpu_advice: str = "choose nodes with GPUs"

    pools: Callable[[Sections], Sequence[NodePool]]
    """Returns its GPU nodes as they are, in the order that queues use. Empty if unknown."""
    further: Callable[[Sections], Sequence[FurtherPoolSettings]] = lambda _: ()
    """Returns the settings of the pools behind the first."""
    fabric: Callable[[Sections, int], Fabric]
    """Returns what a pod that takes a whole node of the pool at a position asks of the network between the nodes."""
    nodes_at_first: Callable[[Sections, NodePool], int] = lambda _, pool: pool.count
    """Returns how many GPU nodes there are when the stack is created, of a pool that may grow."""
    shared_files: Callable[[S], str | None]
    """Returns the storage class of volumes that many nodes mount, None for the cluster's default."""
    kubernetes_version: Callable[[Sections], str | None] = lambda _: None
    """Returns the cluster's version, such as 1.35 or 1.35.6, None if unknown."""
    registry: Callable[[Sections], str | None] = lambda _: None
    """Returns where the site's own images are pulled from, None if no setting says."""
    node_check_image: Callable[[Sections], str | None] = lambda _: None
    """Returns the image that tests a single node, None for that of the NCCL test."""
    volumes: Callable[[Sections], Mapping[str, str] | None] = lambda _: {}
    """Returns the claims that workloads may mount by name, with their namespaces, None if unknown."""
    claims: Callable[[Sections], Iterable[Claim]] = lambda _: ()
    """Returns the claims that it makes itself, as far as they are known."""
    planned: Callable[[Sections], Iterable[Planned]] = lambda _: ()
    """Returns the objects that only it makes and its settings name."""
    namespaces_made: Callable[[Sections], Iterable[str]] = lambda _: ()
    """Returns the namespaces of the target's objects, which teams cannot have."""
    projects: Callable[[S], Iterable[str]] = lambda _: ()
    """Returns the namespaces that it creates for other users than teams, with separate queues."""
    queues: Callable[[Sections], Mapping[str, Quota]] = lambda _: {}
    """Returns the quotas of the target's queues, in addition to the slack queue and the teams', by section."""
    node_selectors: Callable[[Sections], Sequence[Mapping[str, str]]] = lambda _: ()
    """Returns the labels of the pools whose nodes are looked up, as the settings do not say it all."""
    ask: Callable[[Sections, Mapping[str, str]], object] = lambda *_: None
    """Returns facts about the cloud of the target, None if it needs none.

    Takes environment variables with credentials. Raises UnansweredError if the cloud does not answer. A preview then
    continues without the facts.
    """
    installs_operators: Callable[[Sections], bool] = lambda _: True
    """Returns whether Kueue, AppWrapper and the operators of jobs are installed from upstream's manifests.

    Otherwise its own layers register them (stacks/layers/site.py, operators).
    """
    brings: Callable[[Sections], Collection[str]] = lambda _: ()
    """Returns the operators of jobs that its own layers install, by their keys in `queueing`."""
    ray_operators: Callable[[S], Collection[str]] = lambda _: ()
    """Returns the namespaces of KubeRay's operator, if its own layers install it."""
    gatekeepers: Callable[[S], Gatekeepers] = lambda _: Gatekeepers()
    """Returns the accounts that start jobs, for the Kueue of upstream's manifest."""
    running_kueue: Callable[[Sections], RunningKueue | None] = adopted
    """Returns the Kueue that is not installed from upstream's manifest, None if the stack installs that."""
