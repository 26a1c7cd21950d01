"""The configuration of target `existing`: the cluster, and facts that the program cannot detect."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from components import names
from components.kubernetes.placement import NodeGroup
from stacks.config.errors import MISSING, ConfigError, Path, key, listed
from stacks.settings import PlatformSettings, images, pools
from stacks.settings.claims import ExistingClaimSettings
from stacks.settings.gpu import ProvidedGpuSettings
from stacks.settings.kubernetes import KubernetesSettings
from stacks.settings.limits import MOST_GPUS, MOST_NODES
from stacks.settings.machines import MACHINES
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores, choice
from stacks.settings.names import (
    ClassName,
    is_label_value,
    label_errors,
    qualified_errors,
)
from stacks.settings.pools import FurtherPoolSettings

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_LABELS: Final = 8
_MOST_TOLERATIONS: Final = 8
"""Of a ResourceFlavor (kubernetes-sigs/kueue, apis/kueue/v1beta1/resourceflavor_types.go)."""


class TolerationSettings(SettingsModel):
    """A toleration, as in a pod."""

    key: str
    """Key of the taint."""
    operator: Literal["Exists", "Equal"] = "Exists"
    """Exists tolerates any value, Equal only the given value."""
    value: str | None = None
    """Value of the taint, for operator Equal."""
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] | None = None
    """Effect of the taint. Default: any."""

    def toleration(self) -> Mapping[str, str]:
        given = {"key": self.key, "operator": self.operator, "value": self.value, "effect": self.effect}
        return {name: value for name, value in given.items() if value is not None}

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from qualified_errors((*path, "key"), self.key, self.key)
        if self.value is not None and not is_label_value(self.value):
            yield ConfigError(
                (*path, "value"),
                "this is not a valid value of a taint",
                "write the value as `kubectl describe node` shows it",
                expected="at most 63 letters, digits, -, _ and ., with a letter or digit first and last",
            )
        if (self.value is None) != (self.operator == "Exists"):
            yield ConfigError(
                (*path, "value"),
                f"a toleration with operator {self.operator} "
                + ("cannot have a value" if self.operator == "Exists" else "needs a value"),
                f"remove the key, or set {key((*path, 'operator'))} to Equal"
                if self.value is not None
                else "set it to the taint's value",
            )


GPU_TOLERATION = TolerationSettings(key=names.GPU, effect="NoSchedule")


_RDMA = (names.RDMA, names.INFINIBAND, names.SHARED_INFINIBAND)
"""Resources that queues count or ignore. A job that requests any other resource is never admitted."""


class RdmaSettings(SettingsModel):
    """RDMA network between the nodes, as their device plugin offers it."""

    resource: Annotated[str, choice("RDMA resource", _RDMA)] = names.RDMA
    """Resource that pods request."""
    per_node: Annotated[int, Field(ge=1, le=64)]
    """Number of devices for a pod that takes a whole node."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables for NCCL in every job, such as NCCL_IB_HCA."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        for name in self.variables:
            if not _VARIABLE.fullmatch(name):
                yield ConfigError(
                    (*path, "variables", name),
                    "this is not a valid name of an environment variable",
                    "copy the name from NCCL's documentation",
                    expected="letters, digits and _, with no digit first",
                    value=MISSING,
                )


class PoolSettings(SettingsModel):
    """The GPU nodes. To set the capacity of a node, use instanceType, or all of gpusPerNode, cpu and memory."""

    node_selector: Mapping[str, str] = Field(default_factory=lambda: {"nvidia.com/gpu.present": "true"})
    """Labels that only these nodes have. All jobs in queues run there, also those without GPUs."""
    tolerations: tuple[TolerationSettings, ...] = (GPU_TOLERATION,)
    """Tolerations for the nodes' taints."""
    count: Annotated[int, Field(ge=0, le=MOST_NODES)] | None = None
    """Number of nodes. Default: read from the cluster at each update, and quotas follow. With an autoscaler, the
    maximum number.
    """
    minimum: Annotated[int, Field(ge=0, le=MOST_NODES)] | None = None
    """Minimum number of nodes of an autoscaler. Default: count. The slack queue lends less for missing nodes, but not
    for nodes that the autoscaler may have removed.
    """
    instance_type: Annotated[str, choice("instance type", tuple(MACHINES))] | None = None
    """Machine type. Default: read from the smallest node."""
    gpus_per_node: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = None
    """GPUs of each node. Default: read from the smallest node."""
    cpu: SomeCores | None = None
    """CPU cores of each node for pods. Default: read from the smallest node."""
    memory: SomeBytes | None = None
    """Memory of each node for pods, in bytes. Default: read from the smallest node."""
    rdma: RdmaSettings | None = None
    """RDMA network between the nodes. Default: none."""

    @property
    def nodes(self) -> NodeGroup:
        """The nodes, as pods are sent to them."""
        return NodeGroup(node_selector=self.node_selector, tolerations=[item.toleration() for item in self.tolerations])

    @property
    def has_shape(self) -> bool:
        """Whether the settings say what one node has."""
        return self.instance_type is not None or None not in (self.gpus_per_node, self.cpu, self.memory)

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from label_errors((*path, "nodeSelector"), self.node_selector)
        if len(self.tolerations) > _MOST_TOLERATIONS:
            yield ConfigError(
                (*path, "tolerations"),
                f"Kueue's flavors can have at most {_MOST_TOLERATIONS} tolerations",
                "merge taints with the same key into one toleration with operator Exists",
            )
        if len(self.node_selector) > _MOST_LABELS:
            yield ConfigError(
                (*path, "nodeSelector"),
                f"Kueue's flavors can have at most {_MOST_LABELS} node labels",
                "keep only labels that no other node has; one is enough",
            )
        if not self.node_selector:
            yield ConfigError(
                (*path, "nodeSelector"),
                "without labels, all nodes of the cluster would count as GPU nodes",
                "set a label that only your GPU nodes have, or remove the key; the default is nvidia.com/gpu.present",
            )
        if self.minimum is not None and (self.count is None or self.minimum > self.count):
            yield ConfigError(
                (*path, "minimum"),
                "the maximum number of nodes is not set"
                if self.count is None
                else f"this exceeds the maximum of {self.count} nodes",
                f"set {key((*path, 'count'))} to the autoscaler's maximum, or remove the key",
            )
        given = [name for name, value in self._shape().items() if value is not None]
        if self.instance_type is None and given and not self.has_shape:
            missing = [name for name, value in self._shape().items() if value is None]
            yield ConfigError(
                (*path, missing[0]),
                f"incomplete shape of a node: {given[0]} is set alone",
                f"set {listed((key((*path, name)) for name in missing), ' and ')}, or remove "
                f"{listed((key((*path, name)) for name in given), ' and ')}",
                expected="all of gpusPerNode, cpu and memory; or an instanceType; or none, to read it from the cluster",
            )

    def _shape(self) -> Mapping[str, object]:
        return {"gpusPerNode": self.gpus_per_node, "cpu": self.cpu, "memory": self.memory}


class MorePoolSettings(PoolSettings, FurtherPoolSettings):
    """GPU nodes of another shape or price: the keys of `pool`, and a name."""


class SystemSettings(SettingsModel):
    """Nodes for the platform's controllers. Default: all nodes without the GPU nodes' taint."""

    node_selector: Mapping[str, str] = Field(default_factory=dict)
    """Labels of these nodes."""
    tolerations: tuple[TolerationSettings, ...] = ()
    """Tolerations for the nodes' taints."""

    @property
    def nodes(self) -> NodeGroup:
        return NodeGroup(node_selector=self.node_selector, tolerations=[item.toleration() for item in self.tolerations])

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from label_errors((*path, "nodeSelector"), self.node_selector)


class StorageClassSettings(SettingsModel):
    """Storage classes by purpose. Default: the cluster's default class.

    A later change replaces the stack's claims, and deletes their data.
    """

    block: ClassName | None = None
    """Class of volumes that one node mounts."""
    files: ClassName | None = None
    """Class of shares that many nodes mount."""
    logs: ClassName | None = None
    """Class of shares for logs."""


class ClusterSettings(SettingsModel):
    """Facts about the cluster that the program cannot detect."""

    pool: PoolSettings = PoolSettings()
    more_pools: tuple[MorePoolSettings, ...] = ()
    """More GPU node pools. Queues try them after pool, in the order of the list. One label must have a different value
    in each pool.
    """
    system: SystemSettings = SystemSettings()
    storage_classes: StorageClassSettings = StorageClassSettings()
    registry: str | None = None
    """Registry of the site's own images, such as registry.example.org/ml."""
    volumes: tuple[ExistingClaimSettings, ...] = ()
    """Claims with data."""
    internal_load_balancer: Mapping[str, str] = Field(default_factory=dict)
    """Annotations that give a Service of type LoadBalancer an internal address."""

    @property
    def pools(self) -> Sequence[PoolSettings]:
        """All pools, in the order that queues try them."""
        return [self.pool, *self.more_pools]

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.registry is not None and not images.PREFIX.fullmatch(self.registry):
            yield ConfigError(
                (*path, "registry"),
                f"this is not a prefix of image names; {images.wrong(self.registry)}",
                "for example registry.example.org/ml",
                expected="a registry's host and a path on it, in lower case, without a scheme, a tag or a / at the end",
            )
        yield from pools.check((*path, "morePools"), self.more_pools)
        groups = {path_of(which): pool.nodes for which, pool in enumerate(self.pools)}
        yield from pools.overlapping(groups)
        for name in self.internal_load_balancer:
            yield from qualified_errors((*path, "internalLoadBalancer", name), name)
        names_of = [claim.name for claim in self.volumes]
        for index, name in enumerate(names_of):
            if name in names_of[:index]:
                yield ConfigError(
                    (*path, "volumes", index, "name"),
                    f"{key((*path, 'volumes', names_of.index(name)))} already has this name, and workloads "
                    "select their volume by name",
                    "list only one of them, or rename one of the claims",
                )


def path_of(which: int) -> Path:
    """Return the key of a pool's settings. which: its position, 0 for the first."""
    return ("cluster", "pool") if which == 0 else ("cluster", "morePools", which - 1)


class ExistingSettings(PlatformSettings):
    """Configuration of a stack on an existing cluster.

    Most such clusters have drivers, device plugins and feature discovery, which are therefore off by default.
    """

    kubernetes: KubernetesSettings = KubernetesSettings()
    cluster: ClusterSettings = ClusterSettings()
    gpu: ProvidedGpuSettings = ProvidedGpuSettings()
