"""Target `existing`, and the common facts of all targets on an existing cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from components import names
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool, NodeShape
from components.kubernetes.quantity import ZERO, Quantity
from stacks.config.cluster_facts import ClusterFacts, NodeFacts
from stacks.config.errors import Path
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.config.sections import Sections
from stacks.settings.machines import MACHINES
from stacks.settings.names import label_errors
from stacks.settings.pools import FurtherPoolSettings
from stacks.targets.existing.settings import ClusterSettings, ExistingSettings, PoolSettings
from stacks.targets.spec import Planned, TargetSpec, shared_sections

_TYPE: Final = "node.kubernetes.io/instance-type"
_PRODUCT: Final = "nvidia.com/gpu.product"
_PODS: Final = Quantity.parse(110)
"""The kubelet's default limit of pods on a node."""

COUNT_KEY: Final[Path] = ("cluster", "pool", "count")
POOLS_KEY: Final[Path] = ("cluster", "morePools")
REGISTRY_KEY: Final[Path] = ("cluster", "registry")


def node_selectors(sections: Sections) -> Sequence[Mapping[str, str]]:
    """Return the labels of the pools whose nodes must be read from the cluster."""
    cluster = sections.section(ClusterSettings)
    return [pool.node_selector for pool in cluster.pools if is_looked_up(pool)] if cluster is not None else ()


def pools(sections: Sections) -> Sequence[NodePool]:
    """Return the nodes as the settings describe them, or else as they are in the cluster."""
    cluster = sections.section(ClusterSettings)
    found = [_pool(pool, sections.facts) for pool in cluster.pools] if cluster is not None else []
    known = [pool for pool in found if pool is not None]
    return known if len(known) == len(found) else ()


def further(sections: Sections) -> Sequence[FurtherPoolSettings]:
    """Return the settings of the pools behind the first."""
    cluster = sections.section(ClusterSettings)
    return cluster.more_pools if cluster is not None else ()


def shared_files(settings: ExistingSettings) -> str | None:
    """Return the class that the settings name."""
    return settings.cluster.storage_classes.files


def fabric(sections: Sections, which: int) -> Fabric:
    """Return what the settings say that the nodes' device plugin offers."""
    cluster = sections.section(ClusterSettings)
    rdma = cluster.pools[which].rdma if cluster is not None else None
    if rdma is None:
        return Fabric()
    return Fabric(resource=rdma.resource, devices=rdma.per_node, variables=rdma.variables)


def kubernetes_version(sections: Sections) -> str | None:
    """Return the version that the cluster says it has."""
    return sections.facts.version if sections.facts is not None else None


def registry(sections: Sections) -> str | None:
    """Return the site's own registry."""
    cluster = sections.section(ClusterSettings)
    return cluster.registry if cluster is not None else None


def volumes(sections: Sections) -> Mapping[str, str] | None:
    """Return the claims that the settings name."""
    cluster = sections.section(ClusterSettings)
    return {claim.name: claim.namespace for claim in reversed(cluster.volumes)} if cluster is not None else None


def planned(sections: Sections) -> Iterator[Planned]:
    """Yield the claims that are there."""
    cluster = sections.section(ClusterSettings)
    for index, claim in enumerate(cluster.volumes if cluster is not None else ()):
        path: Path = ("cluster", "volumes", index, "name")
        yield Planned("PersistentVolumeClaim", claim.namespace, claim.name, path)


def is_looked_up(pool: PoolSettings) -> bool:
    """Return whether the settings leave something to be read off a pool's nodes, and there can be such nodes."""
    is_whole = pool.count is not None and pool.has_shape
    return not is_whole and not any(label_errors((), pool.node_selector))


def _pool(pool: PoolSettings, facts: ClusterFacts | None) -> NodePool | None:
    """Return a pool, None where its nodes would have to be asked."""
    nodes = facts.nodes_with(pool.node_selector) if facts is not None else ()
    if is_looked_up(pool) and not nodes:
        return None
    shape = given_shape(pool) if pool.has_shape else smallest(nodes)
    if shape is None or (pool.count is None and facts is None):
        return None
    return NodePool(
        name=pool.name if isinstance(pool, FurtherPoolSettings) else names.FLAVOR,
        nodes=pool.nodes,
        count=len(nodes) if pool.count is None else pool.count,
        shape=shape,
        minimum=pool.minimum if pool.count is not None else None,
        is_read=not pool.has_shape,
    )


def given_shape(pool: PoolSettings) -> NodeShape:
    """Return the shape that the settings give."""
    devices = pool.rdma.per_node if pool.rdma is not None else 0
    counted = {names.RDMA: 0, names.INFINIBAND: 0}
    if pool.rdma is not None and pool.rdma.resource in counted:
        counted[pool.rdma.resource] = devices
    if pool.instance_type is not None:
        return MACHINES[pool.instance_type].shape(
            gpus=pool.gpus_per_node,
            cpu=pool.cpu,
            memory=pool.memory,
            roce_devices=counted[names.RDMA],
            ports=counted[names.INFINIBAND],
        )
    return NodeShape(
        instance_type="",
        gpu_product="",
        resources={
            names.CPU: pool.cpu or ZERO,
            names.MEMORY: pool.memory or ZERO,
            names.GPU: Quantity.parse(pool.gpus_per_node or 0),
            names.RDMA: Quantity.parse(counted[names.RDMA]),
            names.INFINIBAND: Quantity.parse(counted[names.INFINIBAND]),
            names.PODS: _PODS,
        },
    )


def smallest(nodes: Sequence[NodeFacts]) -> NodeShape | None:
    """Return the shape that every node has at least, None of no nodes."""
    if not nodes:
        return None
    amounts = {
        resource: min(Quantity.parse(node.allocatable.get(resource, "0")) for node in nodes)
        for resource in names.RESOURCES
    }
    labels = nodes[0].labels
    return NodeShape(instance_type=labels.get(_TYPE, ""), gpu_product=labels.get(_PRODUCT, ""), resources=amounts)


EXISTING: Final = TargetSpec(
    name="existing",
    summary="any cluster with GPU nodes that a kubeconfig names: EKS, GKE, on-premises, kind",
    settings=ExistingSettings,
    sections=("kubernetes", "cluster", *shared_sections()),
    secrets=(MLOPS_PASSWORD,),
    count_key=COUNT_KEY,
    pools_key=POOLS_KEY,
    registry_key=REGISTRY_KEY,
    has_kubeconfig=True,
    node_selectors=node_selectors,
    pools=pools,
    further=further,
    shared_files=shared_files,
    fabric=fabric,
    kubernetes_version=kubernetes_version,
    registry=registry,
    volumes=volumes,
    planned=planned,
)
